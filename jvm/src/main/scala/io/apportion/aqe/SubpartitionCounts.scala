package io.apportion.aqe

import io.apportion.conf.SessionPolicy
import io.apportion.decision.PowersOfTwo
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.RebalancePartitions
import org.apache.spark.sql.catalyst.plans.physical.{
  HashPartitioning,
  Partitioning,
  RangePartitioning,
  RoundRobinPartitioning
}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.exchange.{Exchange, ShuffleExchangeExec}

/**
 * Before a shuffle runs, lowers its number of subpartitions to a power of two (Spark's 200 to 128), so that a power-of-two
 * number of tasks reads equally many of them each. Numbers that the query gives stay, and so do exchanges that must agree with
 * one that cannot change. A set parallelism above the lowered number keeps what Spark planned.
 */
case class SubpartitionCounts(session: SparkSession) extends Guarded {

  override protected def applyGuarded(plan: SparkPlan): SparkPlan = {
    UserRepartitions.forgetKept(plan)
    val groups = groupsOf(plan).flatMap(exchangesToChange)
    Validated.applyAll(plan, groups)(lower)
  }

  private def groupsOf(plan: SparkPlan): Seq[ExchangeGroup] =
    ExchangeGroup.collect(plan) ++ plan.collect { case exchange: Exchange =>
      ExchangeGroup.collect(exchange.child)
    }.flatten

  /** The exchanges of a group, if all of them may change and any needs to. */
  private def exchangesToChange(group: ExchangeGroup): Option[Seq[ShuffleExchangeExec]] = {
    val exchanges = group.leaves.map(_.node).collect { case e: ShuffleExchangeExec if !isGivenByQuery(e) => e }
    val n = group.leaves.head.subpartitions
    val changeable = group.forbidden.isEmpty && exchanges.size == group.leaves.size &&
      exchanges.forall(e => withCount(e.outputPartitioning, n).isDefined)
    Option.when(changeable && lowered(n) != n)(exchanges)
  }

  private def lowered(n: Int): Int = {
    val power = PowersOfTwo.down(n.toLong).toInt
    if (new SessionPolicy(conf, session.sparkContext).explicitParallelism.exists(_ > power)) n else power
  }

  private def isGivenByQuery(exchange: ShuffleExchangeExec): Boolean = exchange.logicalLink.exists {
    case rebalance: RebalancePartitions => rebalance.optNumPartitions.isDefined
    case _                              => false
  }

  private def lower(plan: SparkPlan, groups: Seq[Seq[ShuffleExchangeExec]]): SparkPlan = {
    val ids = groups.flatten.map(_.id).toSet
    plan.transformDown {
      case e: ShuffleExchangeExec if ids(e.id) =>
        withCount(e.outputPartitioning, lowered(e.outputPartitioning.numPartitions)).fold(e)(p =>
          e.copy(outputPartitioning = p)
        )
    }
  }

  private def withCount(partitioning: Partitioning, n: Int): Option[Partitioning] = partitioning match {
    case hash: HashPartitioning    => Some(hash.copy(numPartitions = n))
    case range: RangePartitioning  => Some(range.copy(numPartitions = n))
    case _: RoundRobinPartitioning => Some(RoundRobinPartitioning(n))
    case _                         => None
  }
}
