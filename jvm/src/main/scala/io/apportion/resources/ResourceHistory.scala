package io.apportion.resources

import java.sql.Timestamp

import scala.collection.mutable

import io.apportion.decision.ResourceRequirement
import io.apportion.rules.TableColumns
import io.apportion.rules.TableColumns.column
import org.apache.spark.sql.Row
import org.apache.spark.sql.types._

/**
 * What changed: for a query, or, without one, for the application.
 *
 * @param slots    of the registered executors
 * @param declared slots that the cluster is asked for, if it is
 */
final case class ResourceChange(
    at: Timestamp,
    query: Option[Long],
    phase: Option[String],
    need: Option[ResourceRequirement],
    slots: Int,
    lost: Int,
    declared: Option[Int]
) {

  /** The change as a row of [[ResourceHistory.schema]]. */
  def toRow: Row = Row(
    at,
    query.orNull,
    phase.orNull,
    need.map(TableColumns.requirement).orNull,
    slots,
    lost,
    declared.orNull
  )
}

/** The last changes of an application, oldest first. */
private[resources] final class ResourceHistory {
  import ResourceHistory._

  private val changes = mutable.Queue.empty[ResourceChange]

  def add(before: SlotState, after: SlotState): Unit = {
    val at = new Timestamp(System.currentTimeMillis())
    def change(query: Option[Long], phase: Option[String], need: Option[ResourceRequirement]) =
      ResourceChange(at, query, phase, need, after.slots, query.fold(0)(after.lost), after.declared.map(_.slots))
    val ofQueries = after.queries.toSeq.sortBy(_._1).collect {
      case (id, now) if before.queries.get(id).forall(was => was.phase != now.phase || was.need != now.need) =>
        change(Some(id), Some(now.phase.name), Some(now.need))
    }
    val ended = (before.queries -- after.queries.keys).toSeq.sortBy(_._1).map { case (id, was) =>
      change(Some(id), Some("ended"), Some(was.need))
    }
    val sameCluster = before.slots == after.slots && before.declared == after.declared
    val found = ended ++ ofQueries
    changes ++= (if (found.isEmpty && !sameCluster) Seq(change(None, None, None)) else found)
    if (changes.size > MostChanges) changes.dropInPlace(changes.size - MostChanges)
  }

  def all: Seq[ResourceChange] = changes.toList
}

object ResourceHistory {
  private val MostChanges = 1000

  /** The columns of `apportion_resources()`, each with what it holds. */
  val schema: StructType = StructType(
    Seq(
      column("at", TimestampType, "when it changed"),
      column("query", LongType, "SQL execution id of the query; none if it concerns the application"),
      column(
        "phase",
        StringType,
        "where the query stands: waiting, stabilizing, running, rescaling, failed or ended"
      ),
      column("requirement", TableColumns.Requirement, "slots that the query declares"),
      column("slots", IntegerType, "slots of the registered executors"),
      column("slots_lost", IntegerType, "slots that the query had before, and are gone"),
      column("declared", IntegerType, "slots that the cluster is asked for; none if it is not")
    )
  )
}
