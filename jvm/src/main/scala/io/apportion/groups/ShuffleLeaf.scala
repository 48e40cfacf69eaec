package io.apportion.groups

import org.apache.spark.sql.catalyst.plans.logical.RepartitionOperation
import org.apache.spark.sql.catalyst.plans.physical.SinglePartition
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadExec, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.exchange._

/**
 * Where a plan fragment reads a shuffle.
 *
 * @param node  the plan node: an exchange, its stage once that runs, or a read over the stage
 * @param stage the stage, if it runs already
 */
final case class ShuffleLeaf(
    node: SparkPlan,
    shuffle: ShuffleExchangeLike,
    stage: Option[ShuffleQueryStageExec]
) {

  /** N: what one task can read at least is one of these. */
  def subpartitions: Int = shuffle.outputPartitioning.numPartitions

  /** The bytes of its subpartitions, if it has run; a shuffle without any map task has written nothing. */
  def bytes: Option[Array[Long]] = stage.map(_.mapStats.fold(new Array[Long](subpartitions))(_.bytesByPartitionId))

  /** Why the query does not let this shuffle's layout be changed, if so. */
  def forbids: Option[String] =
    if (shuffle.outputPartitioning == SinglePartition) Some(s"$name has a single partition by nature")
    else
      shuffle.shuffleOrigin match {
        case ENSURE_REQUIREMENTS | REPARTITION_BY_COL | REBALANCE_PARTITIONS_BY_NONE | REBALANCE_PARTITIONS_BY_COL =>
          None
        case REPARTITION_BY_NUM if isAsked =>
          Some(s"the query asks for the $subpartitions partitions of $name by repartition")
        case REPARTITION_BY_NUM =>
          Some(s"Spark gave $name $subpartitions partitions in place of a repartition's number")
        case other => Some(s"$name has the origin $other")
      }

  /** Whether this is the number that a repartition gave: under a join Spark may put another in its place. */
  private def isAsked: Boolean = shuffle.logicalLink.exists {
    case repartition: RepartitionOperation => repartition.numPartitions == subpartitions
    case _                                 => false
  }

  def name: String = stage.fold("an exchange")(s => s"stage ${s.id}")
}

object ShuffleLeaf {
  def unapply(plan: SparkPlan): Option[ShuffleLeaf] = plan match {
    case AQEShuffleReadExec(stage: ShuffleQueryStageExec, _) => Some(ShuffleLeaf(plan, stage.shuffle, Some(stage)))
    case stage: ShuffleQueryStageExec                        => Some(ShuffleLeaf(plan, stage.shuffle, Some(stage)))
    case exchange: ShuffleExchangeLike                       => Some(ShuffleLeaf(plan, exchange, None))
    case _                                                   => None
  }
}
