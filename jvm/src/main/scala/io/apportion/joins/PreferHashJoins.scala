package io.apportion.joins

import io.apportion.decision.ranges.Bytes
import io.apportion.groups.ExchangeGroup
import io.apportion.memory.operators.RowHolders
import io.apportion.report.ReportSource
import io.apportion.rules.Guarded
import io.apportion.settings.SessionPolicy
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildRight, BuildSide, JoinSelectionHelper}
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.adaptive.{LogicalQueryStage, QueryStageExec, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.joins.ShuffledHashJoinExec

/**
 * Joins finished shuffles with hash tables, where Spark would sort both sides. A hash table cannot spill, so the whole side of
 * the join has to fit the memory that a task surely gets. Then it fits for any skew of the keys and any number of tasks.
 * Spark has a rule for this too, but it compares stored bytes, and it is off by default (`DynamicJoinSelection`, 3.5 to 4.2;
 * `ConvertSortMergeJoinToShuffledHashJoin`, 4.3).
 */
case class PreferHashJoins(session: SparkSession) extends Guarded[LogicalPlan] with JoinSelectionHelper {
  import PreferHashJoins._

  override protected def applyGuarded(plan: LogicalPlan): LogicalPlan =
    if (!plan.exists(_.isInstanceOf[Join])) plan
    else {
      val memory = new SessionPolicy(conf, session.sparkContext).taskMemory(broadcasts = 0)
      memory.fold(plan)(bytes => new Choice(bytes, bytes / MemoryShare - chosenBytes(plan)).of(plan, sortedBy = Nil))
    }

  /**
   * Chooses the joins of a plan.
   *
   * @param memory bytes of the memory of a task
   * @param free   bytes of it that the tables may take
   */
  private final class Choice(memory: Long, private var free: Long) {

    /** @param sortedBy keys by which the operator above sorts the rows, unless they have this order already */
    def of(plan: LogicalPlan, sortedBy: Seq[Expression]): LogicalPlan = plan match {
      case join @ ExtractEquiJoinKeys(_, leftKeys, rightKeys, _, _, _, _, _) =>
        val keepsOrder = Seq(leftKeys, rightKeys).exists(isSame(_, sortedBy))
        val table = if (keepsOrder) None else smallestTable(join, leftKeys, rightKeys)
        table.foreach { case (_, bytes) => free -= bytes }
        val (left, right) = if (table.isEmpty) (leftKeys, rightKeys) else (Nil, Nil)
        val below = join.mapChildren(child => of(child, if (child eq join.left) left else right)).asInstanceOf[Join]
        table.fold(below) { case (side, bytes) => hinted(below, side, bytes) }
      case _: Project | _: Filter => plan.mapChildren(of(_, sortedBy))
      case window: Window         => window.mapChildren(of(_, window.partitionSpec))
      case _                      => plan.mapChildren(of(_, Nil))
    }

    private def smallestTable(
        join: Join,
        leftKeys: Seq[Expression],
        rightKeys: Seq[Expression]
    ): Option[(BuildSide, Long)] =
      if (!isFree(join.hint) || !join.children.forall(isFinished) || isBroadcast(join)) None
      else {
        val left = tableBytes(join.left, leftKeys, join.right).filter(_ => canBuildBroadcastLeft(join.joinType))
        val right = tableBytes(join.right, rightKeys, join.left).filter(_ => canBuildBroadcastRight(join.joinType))
        val sides = left.map(BuildLeft -> _) ++ right.map(BuildRight -> _)
        sides.filter(_._2 <= free).toSeq.sortBy(_._2).headOption
      }

    private def hinted(join: Join, side: BuildSide, bytes: Long): Join = {
      val info = Some(HintInfo(Some(SHUFFLE_HASH)))
      val hint = if (side == BuildLeft) join.hint.copy(leftHint = info) else join.hint.copy(rightHint = info)
      val result = join.copy(hint = hint)
      result.copyTagsFrom(join)
      result.setTagValue(
        Why,
        s"joined by a hash table of at most ${Bytes.text(bytes)} instead of sorts (a task has ${Bytes.text(memory)})"
      )
      result
    }
  }

  /** Whether the query does not say how to join. Spark may know that most tasks have nothing to broadcast for. */
  private def isFree(hint: JoinHint): Boolean =
    Seq(hint.leftHint, hint.rightHint).flatten.flatMap(_.strategy).forall(_ == NO_BROADCAST_HASH)

  /** Whether Spark broadcasts a side, now that their sizes are known. */
  private def isBroadcast(join: Join): Boolean = {
    def fits(side: LogicalPlan, hint: Option[HintInfo]) =
      canBroadcastBySize(side, conf) && !hint.flatMap(_.strategy).contains(NO_BROADCAST_HASH)
    canBuildBroadcastLeft(join.joinType) && fits(join.left, join.hint.leftHint) ||
    canBuildBroadcastRight(join.joinType) && fits(join.right, join.hint.rightHint)
  }

  /** Whether all shuffles below have finished, so that the join runs next. */
  private def isFinished(side: LogicalPlan): Boolean = side.collectLeaves().forall {
    case LogicalQueryStage(_, physical) =>
      physical.collectLeaves().forall {
        case stage: QueryStageExec => stage.isMaterialized
        case _                     => false
      }
    case _ => false
  }

  /** Bytes of the tables of joins that have hints already. */
  private def chosenBytes(plan: LogicalPlan): Long = plan.collect {
    case ExtractEquiJoinKeys(_, leftKeys, rightKeys, _, _, left, right, hint) =>
      val sides = Seq((left, leftKeys, right, hint.leftHint), (right, rightKeys, left, hint.rightHint))
      sides.map {
        case (side, keys, other, Some(HintInfo(Some(SHUFFLE_HASH)))) => tableBytes(side, keys, other).getOrElse(0L)
        case _                                                       => 0L
      }.sum
  }.sum

  /** Upper bound for a table with all rows of a side. `None` unless they are those of a finished shuffle, the smaller one. */
  private def tableBytes(side: LogicalPlan, keys: Seq[Expression], other: LogicalPlan): Option[Long] = side match {
    case LogicalQueryStage(_, stage: ShuffleQueryStageExec) if side.stats.sizeInBytes <= other.stats.sizeInBytes =>
      RowHolders.table(stage, keys).map(_.atMost.toLong)
    case _ => None
  }
}

object PreferHashJoins extends ReportSource {

  /**
   * Spark gives each of `n` running tasks at least 1 / 2n of an executor's memory (`ExecutionMemoryPool`), and blocks that are
   * cached later may take half of that (`spark.memory.storageFraction`).
   */
  private val MemoryShare = 4

  private val Why = TreeNodeTag[String]("apportion.hashJoin")

  /** Why a join that reads a group is a hash join, if this rule has chosen it. */
  override def remark(group: ExchangeGroup): Option[String] =
    group.root
      .collect { case join: ShuffledHashJoinExec => join.logicalLink.flatMap(_.getTagValue(Why)) }
      .flatten
      .headOption

  private def isSame(keys: Seq[Expression], others: Seq[Expression]): Boolean =
    keys.length == others.length && keys.zip(others).forall { case (key, other) => key.semanticEquals(other) }
}
