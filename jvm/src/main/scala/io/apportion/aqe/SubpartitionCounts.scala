package io.apportion.aqe

import io.apportion.Guarded
import io.apportion.conf.SessionPolicy
import io.apportion.decision.{Policy, PowersOfTwo}
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
 * number of tasks reads equally many of them each, or raises it to as many tasks as a setting or hint asks for at least.
 * Numbers that the query gives stay, and so do exchanges that must agree with one that cannot change.
 */
case class SubpartitionCounts(session: SparkSession) extends Guarded[SparkPlan] {

  override protected def applyGuarded(plan: SparkPlan): SparkPlan = {
    UserRepartitions.forgetKept(plan)
    val settings = new SessionPolicy(conf, session.sparkContext)
    Validated.applyAll(plan, groupsOf(plan).flatMap(counts(_, settings)))(change)
  }

  private def groupsOf(plan: SparkPlan): Seq[ExchangeGroup] =
    ExchangeGroup.collect(plan) ++ plan.collect { case exchange: Exchange =>
      ExchangeGroup.collect(exchange.child)
    }.flatten

  /** A new number for the exchanges of a group, by their ids, if all of them may change and any needs to. */
  private def counts(group: ExchangeGroup, settings: SessionPolicy): Option[Map[Int, Int]] = {
    val exchanges = group.leaves.map(_.node).collect { case e: ShuffleExchangeExec if !isGivenByQuery(e) => e }
    val n = group.leaves.head.subpartitions
    val changeable = group.forbidden.isEmpty && exchanges.size == group.leaves.size &&
      exchanges.forall(e => withCount(e.outputPartitioning, n).isDefined)
    lazy val wanted = count(n, GroupRead.policy(group, settings, None))
    Option.when(changeable && wanted != n)(exchanges.map(_.id -> wanted).toMap)
  }

  private def count(n: Int, policy: Policy): Int = {
    val fewest = policy.parallelism.getOrElse(policy.lowerBound).min(SubpartitionCounts.Most)
    PowersOfTwo.down(n.toLong).toInt.max(fewest)
  }

  private def isGivenByQuery(exchange: ShuffleExchangeExec): Boolean = exchange.logicalLink.exists {
    case rebalance: RebalancePartitions => rebalance.optNumPartitions.isDefined
    case _                              => false
  }

  private def change(plan: SparkPlan, groups: Seq[Map[Int, Int]]): SparkPlan = {
    val counts = groups.flatten.toMap
    plan.transformDown {
      case e: ShuffleExchangeExec if counts.contains(e.id) =>
        withCount(e.outputPartitioning, counts(e.id)).fold(e)(p => e.copy(outputPartitioning = p))
    }
  }

  private def withCount(partitioning: Partitioning, n: Int): Option[Partitioning] = partitioning match {
    case hash: HashPartitioning    => Some(hash.copy(numPartitions = n))
    case range: RangePartitioning  => Some(range.copy(numPartitions = n))
    case _: RoundRobinPartitioning => Some(RoundRobinPartitioning(n))
    case _                         => None
  }
}

object SubpartitionCounts {

  /** A shuffle is not raised above this, as every map task writes that many blocks. */
  val Most = 32768
}
