package io.apportion.sizing

import java.util.IdentityHashMap

import io.apportion.rules.ReflectiveCopy
import org.apache.spark.sql.catalyst.plans.physical._
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.ShuffleQueryStageExec
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec

/**
 * Key of equal exchanges. Spark runs equal exchanges once if they also have the same number of partitions. This is the
 * key of Spark's stage cache (`AdaptiveExecutionContext.stageCache`), without the numbers of partitions in it.
 *
 * @param exchange canonical exchange in which all numbers of partitions are 1
 */
private[apportion] final case class ShuffleKey(exchange: SparkPlan)

/** Computes the keys of one plan, and visits each node once. */
private[apportion] final class ShuffleKeys {
  private val known = new IdentityHashMap[SparkPlan, SparkPlan]

  def of(exchange: SparkPlan): ShuffleKey = ShuffleKey(withoutNumbers(exchange.canonicalized))

  /** Numbers of partitions of the shuffles in a plan that have started. */
  def running(plan: SparkPlan): Map[ShuffleKey, Int] = plan.collect { case stage: ShuffleQueryStageExec =>
    of(stage) -> stage.shuffle.outputPartitioning.numPartitions
  }.toMap

  private def withoutNumbers(plan: SparkPlan): SparkPlan =
    if (known.containsKey(plan)) known.get(plan)
    else {
      val withNewChildren = plan.mapChildren(withoutNumbers)
      val without = withNewChildren match {
        case exchange: ShuffleExchangeExec => ShuffleKey.withNumber(exchange, 1)
        case other                         => other
      }
      known.put(plan, without)
      without
    }
}

private[apportion] object ShuffleKey {

  /** The exchange with `n` partitions, or unchanged if [[hasNumber]] is false. */
  def withNumber(exchange: ShuffleExchangeExec, n: Int): ShuffleExchangeExec =
    if (exchange.outputPartitioning.numPartitions == n) exchange
    else partitioning(exchange.outputPartitioning, n).fold(exchange)(ReflectiveCopy.replaceFirstField(exchange, _))

  /** Whether the partitioning has a number of partitions that can change. */
  def hasNumber(exchange: ShuffleExchangeExec): Boolean = partitioning(exchange.outputPartitioning, 1).isDefined

  private def partitioning(current: Partitioning, n: Int): Option[Partitioning] = current match {
    case hash: HashPartitioning    => Some(hash.copy(numPartitions = n))
    case range: RangePartitioning  => Some(range.copy(numPartitions = n))
    case _: RoundRobinPartitioning => Some(RoundRobinPartitioning(n))
    case _                         => None
  }
}
