package io.apportion.aqe

import io.apportion.decision.Bytes
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.{BroadcastQueryStageExec, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.exchange.{BroadcastExchangeLike, ShuffleExchangeLike}
import org.apache.spark.sql.execution.joins.{BroadcastNestedLoopJoinExec, CartesianProductExec}

/**
 * What a plan that has not run is likely to put out: the bytes of its leaves. Spark's own estimate of a join is the product of
 * its sides unless there are statistics of columns, which is no help here; filters and aggregates make less of the bytes, and
 * Spark plans again when more stages have finished.
 *
 * @param tasks in which it is likely to run
 */
private[aqe] final case class LikelyOutput(bytes: Long, tasks: Long) {
  def +(other: LikelyOutput): LikelyOutput = LikelyOutput(Bytes.add(bytes, other.bytes), tasks + other.tasks)
}

private[aqe] object LikelyOutput {
  private val nothing = LikelyOutput(0, 0)

  /** None where nothing is known of a leaf's size, or rows are multiplied by a number that nobody knows. */
  def of(plan: SparkPlan): Option[LikelyOutput] = plan match {
    case _: BroadcastExchangeLike | _: BroadcastQueryStageExec                      => Some(nothing)
    case stage: ShuffleQueryStageExec                                               => ofStage(stage)
    case exchange: ShuffleExchangeLike                                              => of(exchange.child)
    case _: GenerateExec | _: CartesianProductExec | _: BroadcastNestedLoopJoinExec => None
    case expand: ExpandExec                                                         =>
      of(expand.child).map(one => one.copy(bytes = Bytes.times(one.bytes, expand.projections.size)))
    case leaf if leaf.children.isEmpty => ofLeaf(leaf)
    case other                         => sum(other.children)
  }

  /** Of several plans together. */
  def sum(plans: Seq[SparkPlan]): Option[LikelyOutput] =
    plans.foldLeft(Option(nothing))((sum, plan) => for (one <- sum; other <- of(plan)) yield one + other)

  /** The bytes that it really wrote, once it has finished. */
  private def ofStage(stage: ShuffleQueryStageExec): Option[LikelyOutput] =
    if (stage.isMaterialized) {
      val bytes = stage.mapStats.fold(0L)(stats => Bytes.sum(stats.bytesByPartitionId))
      Some(LikelyOutput(bytes, stage.shuffle.outputPartitioning.numPartitions.toLong.min(bytes / taskBytes(stage) + 1)))
    } else of(stage.shuffle.child)

  /** By the statistics of files or tables, which the columns that are read take their part of. */
  private def ofLeaf(leaf: SparkPlan): Option[LikelyOutput] = for {
    logical <- leaf.logicalLink
    bytes = logical.stats.sizeInBytes
    if bytes < leaf.conf.defaultSizeInBytes
  } yield LikelyOutput(bytes.toLong, bytes.toLong / taskBytes(leaf) + 1)

  private def taskBytes(plan: SparkPlan): Long = plan.conf.filesMaxPartitionBytes.max(1)
}
