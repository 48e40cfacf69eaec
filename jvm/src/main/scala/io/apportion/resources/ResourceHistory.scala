package io.apportion.resources

import java.sql.Timestamp

import scala.collection.mutable

import io.apportion.decision.ResourceRequirement
import io.apportion.resources.deadlines.QueryTimes
import io.apportion.util.{TableColumns, TableFunction}
import io.apportion.util.TableColumns.column
import org.apache.spark.sql.Row
import org.apache.spark.sql.types._

/**
 * A change of a query's slots, or of the application's slots if `query` is empty. The fields are the columns of
 * [[ResourceHistory.schema]].
 *
 * @param slots    task slots of the registered executors
 * @param declared task slots that Apportion requests from the cluster manager, if it requests any
 * @param times    times of the query, if it has a deadline
 */
final case class ResourceChange(
    at: Timestamp = new Timestamp(System.currentTimeMillis()),
    query: Option[Long] = None,
    phase: Option[String] = None,
    need: Option[ResourceRequirement] = None,
    slots: Int,
    lost: Int = 0,
    declared: Option[Int] = None,
    times: Option[QueryTimes] = None
) {

  /** The change as a row of [[ResourceHistory.schema]]. */
  def toRow: Row = Row(
    at,
    query.orNull,
    phase.orNull,
    need.map(TableColumns.requirement).orNull,
    slots,
    lost,
    declared.orNull,
    times.map(_.within / 1000.0).orNull,
    times.flatMap(_.planned).map(_ / 1000.0).orNull,
    times.map(_.elapsed / 1000.0).orNull
  )
}

/** The last changes of an application, oldest first. */
private[resources] final class ResourceHistory {
  import ResourceHistory._

  private val changes = mutable.Queue.empty[ResourceChange]

  /** @param timesOf times of a query with a deadline */
  def add(before: SlotState, after: SlotState)(timesOf: Long => Option[QueryTimes]): Unit = {
    val ofApplication = ResourceChange(slots = after.slots, declared = after.declared.map(_.slots))
    def change(query: Long, phase: String, need: ResourceRequirement) = ofApplication.copy(
      query = Some(query),
      phase = Some(phase),
      need = Some(need),
      lost = after.lost(query),
      times = timesOf(query)
    )
    val changed = after.queries.toSeq.sortBy(_._1).collect {
      case (id, now) if before.queries.get(id).forall(was => was.phase != now.phase || was.need != now.need) =>
        change(id, now.phase.name, now.need)
    }
    val ended = (before.queries -- after.queries.keys).toSeq.sortBy(_._1).map { case (id, was) =>
      change(id, "ended", was.need)
    }
    val sameCluster = before.slots == after.slots && before.declared == after.declared
    val ofQueries = ended ++ changed
    changes ++= (if (ofQueries.isEmpty && !sameCluster) Seq(ofApplication) else ofQueries)
    while (changes.size > MostChanges) changes.dequeue()
  }

  def all: Seq[ResourceChange] = changes.toList
}

private[apportion] object ResourceHistory {
  private val MostChanges = 1000

  /** The columns of `apportion_resources()`, with their meaning as comments. */
  val schema: StructType = StructType(
    Seq(
      column("at", TimestampType, "time of the change"),
      column("query", LongType, "SQL execution id of the query; null for a change of the application"),
      column(
        "phase",
        StringType,
        "phase of the query: waiting, stabilizing, running, rescaling, failed or ended"
      ),
      column("requirement", TableColumns.Requirement, "task slots that the query declares: min, target and max"),
      column("slots", IntegerType, "task slots of the registered executors"),
      column("slots_lost", IntegerType, "task slots that the query has lost"),
      column(
        "declared",
        IntegerType,
        "task slots that Apportion requests from the cluster manager; null if it requests none"
      ),
      column("finish_within", DoubleType, "seconds within which the query must end; null if it has no deadline"),
      column("planned", DoubleType, "seconds that the query is expected to take in all; null if they are unknown"),
      column("elapsed", DoubleType, "seconds since the query began; null if it has no deadline")
    )
  )

  /** The table function `apportion_resources()`. */
  val function: TableFunction.Description = TableFunction.withoutArguments(
    "apportion_resources",
    "_FUNC_() - Returns the last changes of the application's task slots and of its queries, oldest first.",
    schema
  )(session => SlotCoordinator.changesOf(session.sparkContext).map(_.toRow))
}
