package io.apportion.broadcasts

import io.apportion.rules.Guarded
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.apportion.exchange.AdaptiveExchangeExec
import org.apache.spark.sql.catalyst.plans.{LeftAnti, LeftOuter, RightOuter}
import org.apache.spark.sql.catalyst.plans.logical.{HintInfo, Join, JoinHint, LogicalPlan, NO_BROADCAST_HASH}
import org.apache.spark.sql.execution.adaptive.{LogicalQueryStage, ShuffleQueryStageExec}

/**
 * Lets Spark broadcast a table that has few keys for Apportion's number of shuffle partitions, but enough for Spark's. Spark
 * shuffles a join if most partitions of a side have no rows, because most tasks then end at once (`DynamicJoinSelection`,
 * 3.5 to 4.2). With more partitions, more of them have no rows.
 */
case class AllowBroadcasts(session: SparkSession) extends Guarded[LogicalPlan] {
  override def publicName: String = "AdaptiveWrites"

  override protected def applyGuarded(plan: LogicalPlan): LogicalPlan = plan.transformDown {
    case join @ Join(left, right, joinType, _, JoinHint(ofLeft, ofRight)) =>
      // Where rows without a match stay, Spark counts the partitions of the other side.
      val (first, second) = joinType match {
        case LeftOuter | RightOuter | LeftAnti => (right, left)
        case _                                 => (left, right)
      }
      join.copy(hint = JoinHint(allowed(ofLeft, first), allowed(ofRight, second)))
  }

  private def allowed(hint: Option[HintInfo], counted: LogicalPlan): Option[HintInfo] =
    hint.filterNot(_.strategy.contains(NO_BROADCAST_HASH) && isFilled(counted))

  /** Whether Spark's number of partitions would be enough for a broadcast. */
  private def isFilled(plan: LogicalPlan): Boolean = plan match {
    case LogicalQueryStage(_, stage: ShuffleQueryStageExec) if stage.shuffle.isInstanceOf[AdaptiveExchangeExec] =>
      stage.mapStats.exists { statistics =>
        val (bytes, partitions) = (statistics.bytesByPartitionId, conf.numShufflePartitions)
        val filled = AllowBroadcasts.filled(bytes.count(_ > 0), bytes.length, partitions)
        filled.toDouble / partitions >= conf.nonEmptyPartitionRatioForBroadcastJoin
      }
    case _ => false
  }
}

object AllowBroadcasts {

  /**
   * How many of `partitions` partitions have rows, as a key is equally likely to be in any of them. The same keys are in
   * `filled` of `of` partitions.
   */
  private[broadcasts] def filled(filled: Int, of: Int, partitions: Int): Int =
    (partitions * (1 - math.pow(1 - filled.toDouble / of, of.toDouble / partitions))).round.toInt
}
