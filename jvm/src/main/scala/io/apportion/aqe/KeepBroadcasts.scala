package io.apportion.aqe

import io.apportion.Guarded
import io.apportion.decision.SubpartitionCount
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.{HintInfo, Join, JoinHint, LogicalPlan, NO_BROADCAST_HASH}
import org.apache.spark.sql.execution.adaptive.{LogicalQueryStage, ShuffleQueryStageExec}

/**
 * Spark does not broadcast what few of a shuffle's subpartitions have rows of, and so shuffles the other side of the join as well
 * (`spark.sql.adaptive.nonEmptyPartitionRatioForBroadcastJoin`). The more subpartitions, the fewer of them have rows. Where there
 * are more than Spark would have made, this takes its verdict back if it would not hold for Spark's own number.
 */
case class KeepBroadcasts(session: SparkSession) extends Guarded[LogicalPlan] {

  override protected def applyGuarded(plan: LogicalPlan): LogicalPlan = plan.transformDown {
    case join: Join if isRefused(join) && sides(join).forall(isFilled) =>
      join.copy(hint = JoinHint(join.hint.leftHint.map(allowed), join.hint.rightHint.map(allowed)))
  }

  private def isRefused(join: Join): Boolean =
    join.hint.leftHint.exists(isRefused) || join.hint.rightHint.exists(isRefused)

  /** Only Spark itself gives this hint, on these grounds. */
  private def isRefused(hint: HintInfo): Boolean = hint.strategy.contains(NO_BROADCAST_HASH)

  private def allowed(hint: HintInfo): HintInfo = if (isRefused(hint)) hint.copy(strategy = None) else hint

  private def isFilled(stage: ShuffleQueryStageExec): Boolean = stage.mapStats.forall { stats =>
    val bytes = stats.bytesByPartitionId
    val n = SubpartitionCounts.planned(stage.shuffle).getOrElse(bytes.length).min(bytes.length)
    val filled = SubpartitionCount.filled(bytes, n)
    filled == 0 || filled >= n * conf.nonEmptyPartitionRatioForBroadcastJoin
  }

  /** The inputs of a join that are shuffles that have run. */
  private def sides(join: Join): Seq[ShuffleQueryStageExec] = join.children.collect {
    case LogicalQueryStage(_, stage: ShuffleQueryStageExec) if stage.isMaterialized => stage
  }
}
