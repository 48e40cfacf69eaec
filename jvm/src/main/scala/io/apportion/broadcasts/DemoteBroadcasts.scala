package io.apportion.broadcasts

import io.apportion.decision.ranges.Bytes
import io.apportion.groups.ExchangeGroup
import io.apportion.memory.{BroadcastMemory, Heaps}
import io.apportion.memory.operators.RowHolders
import io.apportion.rules.Guarded
import io.apportion.settings.SessionPolicy
import org.apache.spark.apportion.Cluster
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.RowOrdering
import org.apache.spark.sql.catalyst.optimizer.BuildLeft
import org.apache.spark.sql.catalyst.plans.logical.{BROADCAST, Join}
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.BroadcastQueryStageExec
import org.apache.spark.sql.execution.joins.{BroadcastHashJoinExec, SortMergeJoinExec}

/**
 * Replaces a broadcast join by a join of two shuffles if the table does not fit the heap of the driver or of the
 * executors. Its size has to be known, from a finished shuffle, from the history, from a broadcast that failed, or from
 * the footers of files. A join stays if the query asks for the broadcast, or if Spark has no other join for it. The
 * rule runs before Spark adds exchanges and sorts.
 */
case class DemoteBroadcasts(session: SparkSession) extends Guarded[SparkPlan] {

  override protected def applyGuarded(plan: SparkPlan): SparkPlan =
    if (!SessionPolicy.limitsMemory(conf, session.sparkContext)) plan
    else
      plan.transformUp { case join: BroadcastHashJoinExec =>
        FailedBroadcasts.watch(session.sparkContext)
        val why = whyNot(join)
        DemoteBroadcasts.mark(join, why)
        if (why.isEmpty) join
        else {
          val shuffled =
            SortMergeJoinExec(join.leftKeys, join.rightKeys, join.joinType, join.condition, join.left, join.right)
          join.logicalLink.foreach(shuffled.setLogicalLink)
          shuffled
        }
      }

  /** Why the table of a join does not fit; `None` if it fits, if its size is unknown, or if the join has to stay. */
  private def whyNot(join: BroadcastHashJoinExec): Option[String] =
    if (isStarted(join) || join.isNullAwareAntiJoin || isRequested(join) || !RowOrdering.isOrderable(join.leftKeys))
      None
    else
      for {
        heaps <- Some(Cluster.heaps(session.sparkContext))
        bytes <- tableBytes(join, heaps)
        (process, heap) <- BroadcastMemory.tooSmall(bytes, heaps)
      } yield s"not a broadcast join, as a table of ${Bytes.text(bytes)} does not fit the $process's heap of ${Bytes.text(heap)}"

  private def isStarted(join: BroadcastHashJoinExec): Boolean =
    DemoteBroadcasts.tableOf(join).isInstanceOf[BroadcastQueryStageExec]

  private def isRequested(join: BroadcastHashJoinExec): Boolean = join.logicalLink.exists {
    case Join(_, _, _, _, hint) =>
      val side = if (join.buildSide == BuildLeft) hint.leftHint else hint.rightHint
      side.flatMap(_.strategy).contains(BROADCAST)
    case _ => true
  }

  private def tableBytes(join: BroadcastHashJoinExec, heaps: Heaps): Option[Long] = {
    val table = DemoteBroadcasts.tableOf(join)
    val keys = if (join.buildSide == BuildLeft) join.leftKeys else join.rightKeys
    val known = KnownBroadcasts.of(session)
    // A broadcast that failed may have failed because of others at the same time, so it counts before its size.
    known.failed(table).orElse(RowHolders.tableBytes(table, keys)).orElse(known.recorded(table)).orElse {
      ParquetRows
        .of(table, BroadcastMemory.smallestTooLarge(heaps))
        .map(rows => RowHolders.tableBytes(rows, table.output, keys))
    }
  }
}

object DemoteBroadcasts {
  private val Why = TreeNodeTag[String]("apportion.notBroadcast")

  /** Why the operator that reads a group is not a broadcast join, if this rule has replaced it. */
  def why(group: ExchangeGroup): Option[String] = group.root match {
    case join: SortMergeJoinExec => (join.logicalLink ++ group.stages).flatMap(_.getTagValue(Why)).headOption
    case _                       => None
  }

  /**
   * Sets or clears the reason. It is on the logical plan, and on the stage of the table if that has finished: Spark then
   * keeps the physical plan that it has, which comes from another logical plan.
   */
  private def mark(join: BroadcastHashJoinExec, why: Option[String]): Unit =
    for (node <- join.logicalLink ++ tableOf(join).collectLeaves()) why match {
      case Some(text) => node.setTagValue(Why, text)
      case None       => node.unsetTagValue(Why)
    }

  private def tableOf(join: BroadcastHashJoinExec): SparkPlan =
    if (join.buildSide == BuildLeft) join.left else join.right
}
