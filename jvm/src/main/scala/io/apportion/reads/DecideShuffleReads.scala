package io.apportion.reads

import io.apportion.decision.{Decider, Decision, Input, Policy}
import io.apportion.groups.{ExchangeGroup, GroupRead, Splittable}
import io.apportion.rules.{Guarded, ValidChanges}
import io.apportion.settings.SessionPolicy
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.{PartialReducerPartitionSpec, SparkPlan}
import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadExec, AQEShuffleReadRule}
import org.apache.spark.sql.execution.exchange.ShuffleOrigin
import org.apache.spark.sql.internal.SQLConf

/**
 * Decides how the finished stages below a new stage are read. It starts again from the stages, so that what Spark coalesced or
 * split for skew does not matter. Being a shuffle read rule, Spark takes it back where it breaks the plan's requirements and leaves it out where final stages must not change.
 *
 * Spark also takes it back where a split breaks what the query asks of the partitions of its result, as a `repartition(columns)`
 * that Spark left out (`AdaptiveSparkPlanExec.optimizeQueryStage`). So it runs a second time, to decide without splits.
 *
 * @param decide replaceable for tests
 * @param splits whether partitions may be split; if not, it decides only where Spark took the first decision back
 */
case class DecideShuffleReads(
    session: SparkSession,
    decide: (Seq[Input], Policy) => Decision = Decider.decide,
    splits: Boolean = true
) extends AQEShuffleReadRule
    with Guarded[SparkPlan] {

  /** Which shuffles may change is said by each of them, with the reason: see [[ShuffleLeaf.forbids]]. */
  override protected val supportedShuffleOrigins: Seq[ShuffleOrigin] = Nil

  override protected def applyGuarded(plan: SparkPlan): SparkPlan =
    if (splits) decideFor(plan, ExchangeGroup.collect(plan))
    else if (PendingDecisions.areOn(plan)) plan
    else decideFor(plan, ExchangeGroup.collect(plan).map(_.copy(splittable = DecideShuffleReads.Whole)))

  private def decideFor(plan: SparkPlan, groups: Seq[ExchangeGroup]): SparkPlan = {
    val planned = planReads(groups)
    val decided = ValidChanges.applyAll(plan, planned.flatMap(_._2.toOption))(GroupRead.applyAll)
    if (planned.nonEmpty) PendingDecisions.attach(decided, planned)
    decided
  }

  /** Spark takes back nothing that is not in the plan, so there is no second decision. */
  override protected def applyObserved(plan: SparkPlan): SparkPlan = {
    if (splits) PendingDecisions.attachObserved(plan, applyGuarded(plan))
    plan
  }

  private def planReads(groups: Seq[ExchangeGroup]): Seq[PendingDecisions.Pending] = if (groups.isEmpty) Nil
  else {
    val settings = new SessionPolicy(conf, session.sparkContext)
    val slots = settings.clusterSlots.fold(groups.map(_ => Option.empty[Int]))(shareSlots(_, groups))
    groups.zip(slots).map { case (group, share) =>
      val read = group.forbidden
        .toLeft(GroupRead.plan(group, GroupRead.policy(group, settings, share), decide))
        .flatMap(read => asSparkReads(group, read).toLeft(read))
      group -> read
    }
  }

  /** Why the group is read as Spark planned it, where Apportion would undo what it must not or cannot do itself. */
  private def asSparkReads(group: ExchangeGroup, read: GroupRead): Option[String] = {
    val bySpark = group.leaves.map(_.node).collect { case reader: AQEShuffleReadExec => reader }
    val isSplit = bySpark.exists(_.partitionSpecs.exists(_.isInstanceOf[PartialReducerPartitionSpec]))
    if (isSplit && read.decision.splits.isEmpty)
      if (group.splittable.leaves.isEmpty) Some(s"Spark split its skewed partitions, and ${group.splittable.otherwise}")
      else
        Option.when(conf.getConf(SQLConf.ADAPTIVE_FORCE_OPTIMIZE_SKEWED_JOIN))(
          s"Spark split its skewed partitions, and ${SQLConf.ADAPTIVE_FORCE_OPTIMIZE_SKEWED_JOIN.key} is true"
        )
    else if (bySpark.exists(_.isLocalRead))
      Splittable.otherManager(conf).map(manager => s"Spark reads it locally, and ${Splittable.whyNoMapRanges(manager)}")
    else None
  }

  /** Groups of one plan fragment run at the same time, so they share the slots by their bytes; each has at least one. */
  private def shareSlots(slots: Int, groups: Seq[ExchangeGroup]): Seq[Option[Int]] = {
    val bytes = groups.map(_.inputBytes.toDouble)
    val total = bytes.sum
    bytes.map(own => Some(if (total > 0) math.round(slots * own / total).toInt.max(1) else slots))
  }
}

object DecideShuffleReads {
  private val Whole = Splittable(Set.empty, "the result has to keep the partitions that the query asks for")
}
