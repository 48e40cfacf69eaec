package io.apportion.joins

import io.apportion.rules.Guarded
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.apportion.exchange.AdaptiveExchangeExec
import org.apache.spark.sql.catalyst.optimizer.InjectRuntimeFilter
import org.apache.spark.sql.catalyst.plans.{LeftAnti, LeftOuter, RightOuter}
import org.apache.spark.sql.catalyst.plans.logical.{HintInfo, Join, JoinHint, LogicalPlan, NO_BROADCAST_HASH}
import org.apache.spark.sql.execution.adaptive.{LogicalQueryStage, ShuffleQueryStageExec}

/**
 * Chooses between a broadcast and a shuffle as Spark would with its own number of shuffle partitions. Spark shuffles a join
 * if most partitions of a side have no rows, because most tasks then end at once (`DynamicJoinSelection`, 3.5 to 4.2).
 * Apportion's partitions say something else: there are more of them, and the rows of a group may be in any of its partitions.
 */
case class BroadcastHints(session: SparkSession) extends Guarded[LogicalPlan] {
  // One of Spark's objects that know joins. The trait behind it has other methods in other versions.
  import InjectRuntimeFilter.{canBuildBroadcastLeft, canBuildBroadcastRight}

  override def publicName: String = "AdaptiveWrites"

  override protected def applyGuarded(plan: LogicalPlan): LogicalPlan = plan.transformDown {
    case join @ Join(left, right, joinType, _, JoinHint(ofLeft, ofRight)) =>
      val (byLeft, byRight) = (hasFewKeys(left), hasFewKeys(right))
      // Where rows without a match stay, Spark counts the partitions of the other side.
      val (first, second) = joinType match {
        case LeftOuter | RightOuter | LeftAnti => (byRight, byLeft)
        case _                                 => (byLeft, byRight)
      }
      join.copy(hint =
        JoinHint(
          hinted(ofLeft, byLeft.flatMap(_ => first), canBuildBroadcastLeft(joinType)),
          hinted(ofRight, byRight.flatMap(_ => second), canBuildBroadcastRight(joinType))
        )
      )
  }

  private def hinted(hint: Option[HintInfo], fewKeys: Option[Boolean], canBroadcast: Boolean): Option[HintInfo] =
    hint.flatMap(_.strategy) match {
      case Some(NO_BROADCAST_HASH) if fewKeys.contains(false) => None
      case None if fewKeys.contains(true) && canBroadcast     => Some(HintInfo(Some(NO_BROADCAST_HASH)))
      case _                                                  => hint
    }

  /** Whether Spark would find few partitions with rows. `None` for a plan that is not a finished adaptive shuffle. */
  private def hasFewKeys(plan: LogicalPlan): Option[Boolean] = plan match {
    case LogicalQueryStage(_, stage: ShuffleQueryStageExec)
        if stage.isMaterialized && stage.shuffle.isInstanceOf[AdaptiveExchangeExec] =>
      for {
        statistics <- stage.mapStats
        bytes = statistics.bytesByPartitionId
        rows <- stage.shuffle.runtimeStatistics.rowCount
        filled = rows.min(bytes.count(_ > 0)).toInt
        if filled > 0
      } yield {
        val ofSpark = BroadcastHints.filled(filled, bytes.length, conf.numShufflePartitions)
        ofSpark.toDouble / conf.numShufflePartitions < conf.nonEmptyPartitionRatioForBroadcastJoin
      }
    case _ => None
  }
}

object BroadcastHints {

  /**
   * How many of `partitions` partitions have rows, as a key is equally likely to be in any of them. The same keys are in
   * `filled` of `of` partitions.
   */
  private[joins] def filled(filled: Int, of: Int, partitions: Int): Int =
    (partitions * (1 - math.pow(1 - filled.toDouble / of, of.toDouble / partitions))).round.toInt
}
