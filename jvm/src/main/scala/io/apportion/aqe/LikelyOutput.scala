package io.apportion.aqe

import io.apportion.decision.Bytes
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.statsEstimation.EstimationUtils
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.{BroadcastQueryStageExec, QueryStageExec, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.exchange.{BroadcastExchangeLike, ReusedExchangeExec, ShuffleExchangeLike}
import org.apache.spark.sql.execution.joins.{BroadcastNestedLoopJoinExec, CartesianProductExec}

/**
 * What a plan that has not run is likely to put out: the bytes of its leaves. Spark's own estimate of a join is the product of
 * its sides unless there are statistics of columns, which is no help here. Columns that are added or dropped count; that filters and
 * aggregates make less of the bytes shows when Spark plans again, with more stages finished.
 *
 * @param stored   bytes as files and shuffles store them
 * @param expanded bytes of the rows that these become
 * @param tasks    in which it is likely to run
 */
private[aqe] final case class LikelyOutput(stored: Long, expanded: Long, tasks: Long) {

  def +(other: LikelyOutput): LikelyOutput =
    LikelyOutput(Bytes.add(stored, other.stored), Bytes.add(expanded, other.expanded), tasks + other.tasks)

  def scaled(factor: Double): LikelyOutput =
    copy(stored = math.ceil(stored * factor).toLong, expanded = math.ceil(expanded * factor).toLong)
}

private[aqe] object LikelyOutput {
  private val nothing = LikelyOutput(0, 0, 0)

  /** None where nothing is known of a leaf's size, or rows are multiplied by a number that nobody knows. */
  def of(plan: SparkPlan): Option[LikelyOutput] = plan match {
    case _: BroadcastExchangeLike | _: BroadcastQueryStageExec                      => Some(nothing)
    case stage: ShuffleQueryStageExec if stage.isMaterialized                       => Some(ofFinished(stage))
    case stage: ShuffleQueryStageExec                                               => of(stage.shuffle.child)
    case exchange: ShuffleExchangeLike                                              => of(exchange.child)
    case _: GenerateExec | _: CartesianProductExec | _: BroadcastNestedLoopJoinExec => None
    case leaf if leaf.children.isEmpty                                              => ofLeaf(leaf)
    case expand: ExpandExec   => of(expand.child).map(_.scaled(expand.projections.size * widening(expand)))
    case unary: UnaryExecNode => of(unary.child).map(_.scaled(widening(unary)))
    case other                => sum(other.children)
  }

  /** Of several plans together. */
  def sum(plans: Seq[SparkPlan]): Option[LikelyOutput] =
    plans.foldLeft(Option(nothing))((sum, plan) => for (one <- sum; other <- of(plan)) yield one + other)

  /** The bytes of all leaves below a plan whose size is known, finished stages or not. */
  def leafBytes(plan: SparkPlan): Long = plan match {
    case stage: QueryStageExec         => leafBytes(stage.plan)
    case reused: ReusedExchangeExec    => leafBytes(reused.child)
    case leaf if leaf.children.isEmpty => ofLeaf(leaf).fold(0L)(_.stored)
    case other                         => other.children.map(leafBytes).foldLeft(0L)(Bytes.add)
  }

  private def ofFinished(stage: ShuffleQueryStageExec): LikelyOutput = {
    val stored = Expansion.stored(stage)
    val subpartitions = stage.shuffle.outputPartitioning.numPartitions
    LikelyOutput(stored, (stored * Expansion.of(stage)).toLong, tasks(stage, stored).min(subpartitions.toLong))
  }

  /** By the statistics of files or tables, which the columns that are read take their part of. */
  private def ofLeaf(leaf: SparkPlan): Option[LikelyOutput] = for {
    logical <- leaf.logicalLink
    bytes = logical.stats.sizeInBytes
    if bytes < leaf.conf.defaultSizeInBytes
  } yield {
    // The link may be to a projection of the leaf's columns.
    val stored = math.ceil(bytes.toDouble * rowBytes(leaf.output) / rowBytes(logical.output)).toLong
    LikelyOutput(stored, (stored * Expansion.OfFiles).toLong, tasks(leaf, stored))
  }

  /** How much wider the rows are that come out than those that go in. */
  private def widening(unary: UnaryExecNode): Double = rowBytes(unary.output) / rowBytes(unary.child.output)

  private def rowBytes(columns: Seq[Attribute]): Double = EstimationUtils.getSizePerRow(columns).toDouble

  private def tasks(plan: SparkPlan, bytes: Long): Long = bytes / plan.conf.filesMaxPartitionBytes.max(1) + 1
}
