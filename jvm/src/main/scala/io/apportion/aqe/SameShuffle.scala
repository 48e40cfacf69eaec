package io.apportion.aqe

import java.util.IdentityHashMap

import org.apache.spark.sql.execution.{InputAdapter, SparkPlan, WholeStageCodegenExec}
import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadExec, QueryStageExec, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.exchange.{ReusedExchangeExec, ShuffleExchangeLike}

/**
 * Stands for all shuffles that Spark may run once for several readers, if their numbers of subpartitions are equal. It may stand
 * for some that differ as well, which does no harm: they get the same number.
 */
private[aqe] final case class SameShuffle(hash: Int)

/** Finds out which shuffles of a plan are the same; what it has seen it does not look at again. */
private[aqe] final class SameShuffles {
  private val hashes = new IdentityHashMap[SparkPlan, Int]

  def of(exchange: ShuffleExchangeLike): SameShuffle = SameShuffle(hash(exchange))

  /** The numbers of subpartitions of the shuffles below a plan that run or have run. */
  def running(plan: SparkPlan): Map[SameShuffle, Int] = plan
    .collect { case stage: QueryStageExec =>
      val own = stage match {
        case shuffle: ShuffleQueryStageExec =>
          Map(of(shuffle.shuffle) -> shuffle.shuffle.outputPartitioning.numPartitions)
        case _ => Map.empty[SameShuffle, Int]
      }
      own ++ running(stage.plan)
    }
    .flatten
    .toMap

  /** Of the kinds of operators and of what the leaves read, without what Spark adds once a stage is made. */
  private def hash(plan: SparkPlan): Int =
    if (hashes.containsKey(plan)) hashes.get(plan)
    else {
      val own = hashOf(plan)
      hashes.put(plan, own)
      own
    }

  private def hashOf(plan: SparkPlan): Int = plan match {
    case stage: QueryStageExec                                              => hash(stage.plan)
    case reused: ReusedExchangeExec                                         => hash(reused.child)
    case _: InputAdapter | _: WholeStageCodegenExec | _: AQEShuffleReadExec => hash(plan.children.head)
    case leaf if leaf.children.isEmpty                                      => leaf.canonicalized.hashCode
    case other => (other.getClass, other.children.map(hash)).hashCode
  }
}
