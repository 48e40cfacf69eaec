package io.apportion.groups

import io.apportion.decision.Sentence
import org.apache.spark.sql.apportion.exchange.TreeStatistics
import org.apache.spark.sql.catalyst.plans.logical.RepartitionOperation
import org.apache.spark.sql.catalyst.plans.physical.SinglePartition
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadExec, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.exchange._

/**
 * Leaf of a plan fragment that reads a shuffle.
 *
 * @param node  plan node of the leaf: an exchange, its stage if the stage has started, or a shuffle read over the stage
 * @param stage stage of the shuffle, if it has started
 */
final case class ShuffleLeaf(
    node: SparkPlan,
    shuffle: ShuffleExchangeLike,
    stage: Option[ShuffleQueryStageExec]
) {

  /** N, the number of shuffle partitions. A task reads at least one of them, unless a partition is split for skew. */
  def subpartitions: Int = shuffle.outputPartitioning.numPartitions

  /** Bytes of each subpartition, once the stage has run. They are all 0 for a shuffle without map tasks. */
  def bytes: Option[Array[Long]] = stage.map(_.mapStats.fold(new Array[Long](subpartitions))(_.bytesByPartitionId))

  /** How map tasks wrote the shuffle, once the stage has run, if they decided it themselves. */
  def tree: Option[TreeStatistics] = stage.flatMap(_.mapStats).collect { case statistics: TreeStatistics => statistics }

  /** Reason why Apportion must not change how tasks read this shuffle, if there is one. */
  def forbids: Option[String] =
    if (shuffle.outputPartitioning == SinglePartition) Some(s"$name must have a single partition")
    else
      shuffle.shuffleOrigin match {
        case ENSURE_REQUIREMENTS | REPARTITION_BY_COL | REBALANCE_PARTITIONS_BY_NONE | REBALANCE_PARTITIONS_BY_COL =>
          None
        case REPARTITION_BY_NUM if isRequested =>
          Some(s"the query sets the $partitions of $name by repartition")
        case REPARTITION_BY_NUM =>
          Some(s"Spark gave $partitions to $name instead of the number that a repartition sets")
        case other => Some(s"$name has the unknown shuffle origin $other")
      }

  private def partitions: String = Sentence.count(subpartitions, "partition")

  /** Whether the repartition in the query set this number of partitions. Under a join, Spark may replace the number. */
  private def isRequested: Boolean = shuffle.logicalLink.exists {
    case repartition: RepartitionOperation => repartition.numPartitions == subpartitions
    case _                                 => false
  }

  def name: String = stage.fold("an exchange")(s => s"query stage ${s.id}")
}

object ShuffleLeaf {
  def unapply(plan: SparkPlan): Option[ShuffleLeaf] = plan match {
    case AQEShuffleReadExec(stage: ShuffleQueryStageExec, _) => Some(ShuffleLeaf(plan, stage.shuffle, Some(stage)))
    case stage: ShuffleQueryStageExec                        => Some(ShuffleLeaf(plan, stage.shuffle, Some(stage)))
    case exchange: ShuffleExchangeLike                       => Some(ShuffleLeaf(plan, exchange, None))
    case _                                                   => None
  }
}
