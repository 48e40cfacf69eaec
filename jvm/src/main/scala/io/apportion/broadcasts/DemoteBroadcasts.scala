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
import org.apache.spark.sql.catalyst.plans.physical.Distribution
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

  override protected def applyGuarded(plan: SparkPlan): SparkPlan = {
    val joins =
      if (SessionPolicy.limitsMemory(conf, session.sparkContext)) plan.collect { case join: BroadcastHashJoinExec =>
        join
      }
      else Nil
    if (joins.isEmpty) plan
    else {
      FailedBroadcasts.watch(session.sparkContext)
      val tooLarge = whyNot(joins)
      // From the top, so that the tables of the joins are those that were looked at.
      plan.transformDown { case join: BroadcastHashJoinExec =>
        val why = tooLarge.get(join)
        DemoteBroadcasts.mark(join, why)
        if (why.isEmpty) join
        else {
          val shuffled =
            SortMergeJoinExec(join.leftKeys, join.rightKeys, join.joinType, join.condition, join.left, join.right)
          join.logicalLink.foreach(shuffled.setLogicalLink)
          shuffled
        }
      }
    }
  }

  /**
   * Why the tables of joins do not fit, alone or beside the other tables of the query. Tables of unknown size are left
   * out. Tables that have to be broadcast come first, and then the smallest, so that as many joins as possible stay.
   */
  private def whyNot(joins: Seq[BroadcastHashJoinExec]): Map[BroadcastHashJoinExec, String] = {
    lazy val heaps = Cluster.heaps(session.sparkContext)
    val sized =
      for (join <- joins; bytes <- tableBytes(join, heaps)) yield DemoteBroadcasts.Sized(join, bytes, canReplace(join))
    // Spark broadcasts equal tables only once (`ReuseExchange`).
    val tables =
      if (sized.size < 2) sized.map(Seq(_))
      else sized.groupBy(each => DemoteBroadcasts.exchangeOf(each.join)).values.toSeq
    var others = 0L
    tables
      .sortBy(uses => (uses.forall(_.canReplace), uses.head.bytes))
      .flatMap { uses =>
        val bytes = uses.head.bytes
        BroadcastMemory.tooSmall(bytes, others, heaps) match {
          case Some((process, heap)) if uses.forall(_.canReplace) =>
            val beside = if (others == 0) "" else s" beside other tables of ${Bytes.text(others)}"
            val why =
              s"not a broadcast join, as a table of ${Bytes.text(bytes)} does not fit the $process's heap of " +
                s"${Bytes.text(heap)}$beside"
            uses.map(_.join -> why)
          case _ =>
            others += bytes
            Nil
        }
      }
      .toMap
  }

  private def canReplace(join: BroadcastHashJoinExec): Boolean =
    !isStarted(join) && !join.isNullAwareAntiJoin && !isRequested(join) && RowOrdering.isOrderable(join.leftKeys)

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
    def ofRows(rows: Long) = RowHolders.tableBytes(rows, table.output, keys)
    table match {
      case stage: BroadcastQueryStageExec => stage.getRuntimeStatistics.rowCount.map(rows => ofRows(rows.toLong))
      case _                              =>
        // A broadcast that failed may have failed because of others at the same time, so it counts before its size.
        known
          .failed(table)
          .orElse(RowHolders.tableBytes(table, keys))
          .orElse(known.recorded(table))
          .orElse(ParquetRows.of(table, BroadcastMemory.smallestTooLarge(heaps)).map(ofRows))
    }
  }
}

object DemoteBroadcasts {

  /** A join with the bytes of its table. */
  private final case class Sized(join: BroadcastHashJoinExec, bytes: Long, canReplace: Boolean)

  /** The rows and the keys of a join's table. */
  private def exchangeOf(join: BroadcastHashJoinExec): (SparkPlan, Distribution) = {
    val distribution = join.requiredChildDistribution(if (join.buildSide == BuildLeft) 0 else 1)
    (tableOf(join).canonicalized, distribution)
  }

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
