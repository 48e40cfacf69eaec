package io.apportion.resources

import java.util.Properties

import scala.collection.concurrent.TrieMap

import io.apportion.decision.ResourceRequirement
import io.apportion.resources.deadlines.{QueryCosts, QueryRun}
import io.apportion.resources.planned.{PlannedStage, PlannedStages}
import org.apache.spark.sql.execution.SQLExecution

/** The tracked queries of an application, and their running stages. Listeners read them without the coordinator's lock. */
private[resources] final class TrackedQueries {
  private val queries = TrieMap.empty[Long, TrackedQuery]
  private val stages = TrieMap.empty[Int, TrackedQuery]

  def all: Iterable[TrackedQuery] = queries.values

  def get(id: Long): Option[TrackedQuery] = queries.get(id)

  /** The query of a job or stage with these properties. */
  def of(properties: Properties): Option[TrackedQuery] =
    Option(properties)
      .flatMap(set => Option(set.getProperty(SQLExecution.EXECUTION_ID_KEY)))
      .map(_.toLong)
      .flatMap(queries.get)

  def ofStage(stage: Int): Option[TrackedQuery] = stages.get(stage)

  /** Adds a query, or returns the tracked one, which another subquery may have begun in the meantime. */
  def add(query: TrackedQuery): TrackedQuery = queries.getOrElseUpdate(query.id, query)

  def remove(id: Long): Unit = {
    queries.remove(id)
    stages.filterInPlace((_, query) => query.id != id)
  }

  def addStage(stage: Int, query: TrackedQuery): Unit = stages.put(stage, query)

  def removeStage(stage: Int): Option[TrackedQuery] = stages.remove(stage)
}

/**
 * A tracked query. The coordinator's lock guards it.
 *
 * @param start time at which it began, in milliseconds
 */
private[resources] final class TrackedQuery(
    val id: Long,
    val settings: SlotSettings,
    costs: Option[QueryCosts],
    start: Long
) {
  val run = new QueryRun(costs, settings.finishWithin, start)

  /** Its stages that have not finished, in an order in which each follows the stages that it reads. */
  var plannedStages = Seq.empty[PlannedStage]

  /** Slots that its stages can use now and soon. */
  def slotsForStages: Int = run.progress.largestStage.max(slotsForNextStages)

  /**
   * Slots for the stages that run, and for the stages that can start after these. Executors take time to start, so they
   * are requested before the tasks of the next stages wait.
   */
  def slotsForNextStages: Int = PlannedStages.atOnce(plannedStages.filter(_.depth <= 1)).min(Int.MaxValue.toLong).toInt

  /** The load of the query. Assumes that unfinished tasks read as many bytes as finished tasks on average. */
  def load(need: ResourceRequirement, slots: Int, now: Long): QueryLoad = {
    val progress = run.progress
    val waiting = (progress.openTasks * progress.taskSpeed.meanBytes).toLong
    QueryLoad(need, slots, waiting, progress.taskSpeed.bytesPerSecond, progress.runningMillis(now))
  }
}
