package io.apportion.aqe

import io.apportion.Guarded
import io.apportion.conf.SessionPolicy
import io.apportion.decision.{Decider, Decision, Input, Policy}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.AQEShuffleReadRule
import org.apache.spark.sql.execution.exchange.ShuffleOrigin

/**
 * Decides how the finished stages below a new stage are read. It starts again from the stages, so that what Spark coalesced or
 * split for skew does not matter. Being a shuffle read rule, Spark takes it back where it breaks the plan's requirements and leaves it out where final stages must not change.
 *
 * @param decide replaceable for tests
 */
case class DecideShuffleReads(
    session: SparkSession,
    decide: (Seq[Input], Policy) => Decision = Decider.decide
) extends AQEShuffleReadRule
    with Guarded[SparkPlan] {

  /** Which shuffles may change is said by each of them, with the reason: see [[ShuffleLeaf.forbids]]. */
  override protected val supportedShuffleOrigins: Seq[ShuffleOrigin] = Nil

  override protected def applyGuarded(plan: SparkPlan): SparkPlan = {
    val planned = planReads(ExchangeGroup.collect(plan))
    val decided = Validated.applyAll(plan, planned.flatMap(_._2.toOption))(GroupRead.applyAll)
    if (planned.nonEmpty) PendingDecisions.attach(decided, planned)
    decided
  }

  override protected def applyObserved(plan: SparkPlan): SparkPlan = {
    PendingDecisions.attachObserved(plan, applyGuarded(plan))
    plan
  }

  private def planReads(groups: Seq[ExchangeGroup]): Seq[PendingDecisions.Pending] = if (groups.isEmpty) Nil
  else {
    val settings = new SessionPolicy(conf, session.sparkContext)
    val slots = settings.clusterSlots.fold(groups.map(_ => Option.empty[Int]))(shareSlots(_, groups))
    groups.zip(slots).map { case (group, share) =>
      group -> group.forbidden.toLeft(GroupRead.plan(group, GroupRead.policy(group, settings, share), decide))
    }
  }

  /** Groups of one plan fragment run at the same time, so they share the slots by their bytes; each has at least one. */
  private def shareSlots(slots: Int, groups: Seq[ExchangeGroup]): Seq[Option[Int]] = {
    val bytes = groups.map(_.inputBytes.toDouble)
    val total = bytes.sum
    bytes.map(own => Some(if (total > 0) math.round(slots * own / total).toInt.max(1) else slots))
  }
}
