package io.apportion.joins

import io.apportion.decision.ranges.Bytes
import io.apportion.groups.ExchangeGroup
import io.apportion.memory.{BroadcastMemory, RowHolders}
import io.apportion.report.ReportSource
import io.apportion.rules.Guarded
import io.apportion.settings.SessionPolicy
import org.apache.spark.apportion.{ExecutorResources, Heaps}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.RowOrdering
import org.apache.spark.sql.catalyst.optimizer.BuildLeft
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical.{BROADCAST, Join}
import org.apache.spark.sql.catalyst.plans.physical.Distribution
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanHelper, BroadcastQueryStageExec}
import org.apache.spark.sql.execution.joins.{BroadcastHashJoinExec, SortMergeJoinExec}

/**
 * Replaces a broadcast join by a join of two shuffles if the table does not fit the heap of the driver or of the
 * executors. Its size has to be known, from a finished shuffle, from the history, from a broadcast that failed, or from
 * the footers of files. A join stays if the query asks for the broadcast, or if Spark has no other join for it. The
 * rule runs before Spark adds exchanges and sorts.
 */
case class DemoteBroadcasts(session: SparkSession) extends Guarded[SparkPlan] with AdaptiveSparkPlanHelper {

  override protected def applyGuarded(plan: SparkPlan): SparkPlan = {
    val joins =
      if (!SessionPolicy.limitsMemory(conf, session.sparkContext)) Nil
      else plan.collect { case join: BroadcastHashJoinExec if !DemoteBroadcasts.isStarted(join) => join }
    if (joins.isEmpty) plan
    else {
      FailedBroadcasts.watch(session.sparkContext)
      val tooLarge = whyNot(joins, startedBytes(plan))
      // From the top, so that the tables of the joins are those that were looked at.
      plan.transformDown {
        case join: BroadcastHashJoinExec if !DemoteBroadcasts.isStarted(join) =>
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
   * Why the tables of joins do not fit, alone or beside others. Tables of unknown size are left out. Tables that have to
   * be broadcast come first, and then the smallest, so that as many joins as possible stay.
   *
   * @param started bytes of the tables that are in memory already
   */
  private def whyNot(joins: Seq[BroadcastHashJoinExec], started: => Long): Map[BroadcastHashJoinExec, String] = {
    lazy val heaps = ExecutorResources.heaps(session.sparkContext)
    val sized = for (join <- joins; bytes <- tableBytes(join, heaps)) yield (join, bytes)
    if (sized.isEmpty) Map.empty
    else {
      // Spark broadcasts equal tables only once (`ReuseExchange`).
      val tables = sized.groupBy { case (join, _) => DemoteBroadcasts.exchangeOf(join) }.values.toSeq.map { uses =>
        (uses.map(_._1), uses.head._2, uses.forall { case (join, _) => canReplace(join) })
      }
      var others = started
      tables
        .sortBy { case (_, bytes, replaceable) => (replaceable, bytes) }
        .flatMap { case (uses, bytes, replaceable) =>
          BroadcastMemory.tooSmall(bytes, others, heaps) match {
            case Some((process, heap)) if replaceable =>
              val beside = if (others == 0) "" else s" beside other tables of ${Bytes.text(others)}"
              val why =
                s"not a broadcast join, as a table of ${Bytes.text(bytes)} does not fit the $process's heap of " +
                  s"${Bytes.text(heap)}$beside"
              uses.map(_ -> why)
            case _ =>
              others += bytes
              Nil
          }
        }
        .toMap
    }
  }

  /** Bytes of the tables that stages of the plan broadcast, or that stages below these have broadcast. */
  private def startedBytes(plan: SparkPlan): Long = {
    val stages = collect(plan) { case stage: BroadcastQueryStageExec => stage }
    stages.groupBy(_.broadcast.id).values.flatMap(reads => KnownBroadcasts.tableBytes(reads.head)).sum
  }

  private def canReplace(join: BroadcastHashJoinExec): Boolean =
    !join.isNullAwareAntiJoin && !isRequested(join) && RowOrdering.isOrderable(join.leftKeys) &&
      DemoteBroadcasts.canMerge(join.joinType)

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
    known
      .failed(table)
      .orElse(RowHolders.table(table, keys).map(_.filled.toLong))
      .orElse(known.recorded(table))
      .orElse(
        ParquetRows
          .of(table, BroadcastMemory.smallestTooLarge(heaps))
          .map(rows => RowHolders.tableBytes(rows, table.output, keys))
      )
  }
}

object DemoteBroadcasts extends ReportSource {

  /** Types of joins that `SortMergeJoinExec` runs. Since Spark 4.0, scalar subqueries can be joins of another type. */
  private def canMerge(joinType: JoinType): Boolean = joinType match {
    case _: InnerLike | LeftOuter | RightOuter | FullOuter | LeftExistence(_) => true
    case _                                                                    => false
  }

  /** The rows and the keys of a join's table. */
  private def exchangeOf(join: BroadcastHashJoinExec): (SparkPlan, Distribution) = {
    val distribution = join.requiredChildDistribution(if (join.buildSide == BuildLeft) 0 else 1)
    (tableOf(join).canonicalized, distribution)
  }

  private val Why = TreeNodeTag[String]("apportion.notBroadcast")

  /** Why the operator that reads a group is not a broadcast join, if this rule has replaced it. */
  override def remark(group: ExchangeGroup): Option[String] = group.root match {
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

  private def isStarted(join: BroadcastHashJoinExec): Boolean = tableOf(join).isInstanceOf[BroadcastQueryStageExec]

  private def tableOf(join: BroadcastHashJoinExec): SparkPlan =
    if (join.buildSide == BuildLeft) join.left else join.right
}
