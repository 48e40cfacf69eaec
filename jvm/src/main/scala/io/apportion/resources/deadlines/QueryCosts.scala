package io.apportion.resources.deadlines

import io.apportion.history.{History, LeafBytes, PlanFingerprint, QueryCost, QueryFingerprint, Run, Runs}
import io.apportion.util.{BoundedMap, PerApplication}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.{QueryExecution, SparkPlan}

/**
 * What one query cost in earlier runs. It is kept in memory, and in the history if there is one.
 *
 * @param leafBytes bytes that the query reads now
 */
private[apportion] final class QueryCosts private (
    entry: String,
    leafBytes: Long,
    history: Option[History],
    inApplication: BoundedMap[String, Runs]
) {

  /** What the query will cost, if it has run before. */
  def expected: Option[QueryCost] = inApplication
    .get(entry)
    .flatMap(_.cost(leafBytes))
    .orElse(history.flatMap(_.runs(entry).cost(leafBytes)))

  def add(cost: QueryCost): Unit = {
    val run = Run("", 0, leafBytes, System.currentTimeMillis(), query = Some(cost))
    inApplication.put(entry, inApplication.get(entry).getOrElse(Runs.none).add(run))
    history.foreach(_.add(entry, run))
  }
}

private[apportion] object QueryCosts {
  private val MaxKnown = 1000

  private[apportion] val inApplication = new PerApplication(_ => new BoundedMap[String, Runs](MaxKnown))

  /** @param plan the plan of the query that runs */
  def of(session: SparkSession, query: QueryExecution, plan: SparkPlan): QueryCosts =
    new QueryCosts(
      PlanFingerprint.combined(Seq("query", QueryFingerprint.of(query.commandExecuted))),
      LeafBytes.of(plan),
      History.of(session),
      inApplication.of(session.sparkContext)
    )
}
