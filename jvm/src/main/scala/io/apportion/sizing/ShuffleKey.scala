package io.apportion.sizing

import java.util.IdentityHashMap

import io.apportion.rules.ReflectiveCopy
import org.apache.spark.sql.catalyst.plans.physical._
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.ShuffleQueryStageExec
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec

/**
 * Stands for all exchanges that Spark runs once if they have the same number of partitions: the key of Spark's stage cache
 * (`AdaptiveExecutionContext.stageCache`), the canonical exchange, without the numbers of partitions in it.
 */
private[apportion] final case class ShuffleKey(exchange: SparkPlan)

/** Makes the keys of one plan; each node is looked at once. */
private[apportion] final class ShuffleKeys {
  private val known = new IdentityHashMap[SparkPlan, SparkPlan]

  def of(exchange: SparkPlan): ShuffleKey = ShuffleKey(withoutNumbers(exchange.canonicalized))

  /** The numbers of partitions of the shuffles in a plan that run or have run. */
  def running(plan: SparkPlan): Map[ShuffleKey, Int] = plan.collect { case stage: ShuffleQueryStageExec =>
    of(stage) -> stage.shuffle.outputPartitioning.numPartitions
  }.toMap

  private def withoutNumbers(plan: SparkPlan): SparkPlan =
    if (known.containsKey(plan)) known.get(plan)
    else {
      val below = plan.mapChildren(withoutNumbers)
      val without = below match {
        case exchange: ShuffleExchangeExec => ShuffleKey.withNumber(exchange, 1)
        case other                         => other
      }
      known.put(plan, without)
      without
    }
}

private[apportion] object ShuffleKey {

  /** The exchange with another number of partitions, if its kind of partitioning has a number that can be changed. */
  def withNumber(exchange: ShuffleExchangeExec, n: Int): ShuffleExchangeExec =
    if (exchange.outputPartitioning.numPartitions == n) exchange
    else partitioning(exchange.outputPartitioning, n).fold(exchange)(ReflectiveCopy.replaceFirstField(exchange, _))

  def hasNumber(exchange: ShuffleExchangeExec): Boolean = partitioning(exchange.outputPartitioning, 1).isDefined

  private def partitioning(current: Partitioning, n: Int): Option[Partitioning] = current match {
    case hash: HashPartitioning    => Some(hash.copy(numPartitions = n))
    case range: RangePartitioning  => Some(range.copy(numPartitions = n))
    case _: RoundRobinPartitioning => Some(RoundRobinPartitioning(n))
    case _                         => None
  }
}
