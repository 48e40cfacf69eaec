package io.apportion.resources.deadlines

import java.util.LinkedHashMap
import java.util.Map.Entry

import scala.collection.mutable

import io.apportion.decision.ranges.Bytes
import io.apportion.history.{History, LeafBytes, PlanFingerprint, QueryCost, QueryFingerprint, Run, Runs}
import org.apache.spark.SparkContext
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.{QueryExecution, SparkPlan}
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec

/**
 * What one query cost in earlier runs. It is kept in memory, and in the history if there is one.
 *
 * @param leafBytes bytes that the query reads now
 */
private[apportion] final class QueryCosts private (
    entry: String,
    leafBytes: Long,
    history: Option[History],
    inMemory: QueryCosts.InMemory
) {

  /** What the query will cost, if it has run before. */
  def expected: Option[QueryCost] = inMemory
    .get(entry)
    .cost(leafBytes)
    .orElse(history.flatMap(_.runs(entry).cost(leafBytes)))

  def add(cost: QueryCost): Unit = {
    val run = Run("", 0, leafBytes, System.currentTimeMillis(), query = Some(cost))
    inMemory.put(entry, inMemory.get(entry).add(run))
    history.foreach(_.add(entry, run))
  }
}

private[apportion] object QueryCosts {
  private val MaxKnown = 1000

  private val byContext = mutable.WeakHashMap.empty[SparkContext, InMemory]

  /** @param plan the plan of the query that runs */
  def of(session: SparkSession, query: QueryExecution, plan: SparkPlan): QueryCosts = {
    val inMemory = synchronized(byContext.getOrElseUpdate(session.sparkContext, new InMemory))
    new QueryCosts(
      PlanFingerprint.combined(Seq("query", QueryFingerprint.of(query.commandExecuted))),
      leafBytes(plan),
      History.of(session),
      inMemory
    )
  }

  /** Bytes of the first plan of a query, so that they do not depend on the stages that have finished. */
  private def leafBytes(plan: SparkPlan): Long = plan match {
    case adaptive: AdaptiveSparkPlanExec => LeafBytes.of(adaptive.initialPlan)
    case other if other.children.isEmpty => LeafBytes.of(other)
    case other                           => other.children.map(leafBytes).foldLeft(0L)(Bytes.add)
  }

  /** Forgets the runs of an application, as if it had just started. */
  private[apportion] def forget(sparkContext: SparkContext): Unit = synchronized(byContext.remove(sparkContext))

  /** Runs of this application, by the name of the entry. */
  private final class InMemory {
    private val known = new LinkedHashMap[String, Runs](16, 0.75f, true) {
      override def removeEldestEntry(eldest: Entry[String, Runs]): Boolean = size > MaxKnown
    }

    def get(entry: String): Runs = synchronized(known.getOrDefault(entry, Runs.none))
    def put(entry: String, runs: Runs): Unit = synchronized(known.put(entry, runs))
  }
}
