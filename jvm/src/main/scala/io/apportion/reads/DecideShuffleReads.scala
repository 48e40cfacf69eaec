package io.apportion.reads

import io.apportion.decision.{Decider, Decision, Input, Policy}
import io.apportion.decision.memory.HeldRows
import io.apportion.decision.ranges.Bytes
import io.apportion.groups.{Advisor, ExchangeGroup, GroupPolicy, GroupRead, Splittable}
import io.apportion.rules.{Guarded, ValidChanges}
import io.apportion.settings.SessionPolicy
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.{PartialReducerPartitionSpec, SparkPlan}
import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadExec, AQEShuffleReadRule}
import org.apache.spark.sql.execution.exchange.ShuffleOrigin
import org.apache.spark.sql.internal.SQLConf

/**
 * Decides how the tasks of a new stage read the finished stages below it. The rule starts from these stages, so
 * earlier coalescing or skew splits by Spark have no effect on it. Extending `AQEShuffleReadRule` lets Spark revert
 * this rule if the plan's requirements break, and skip it for final stages whose partitioning must not change.
 *
 * Spark also reverts the rule if a split breaks the partitioning that the query requires of its result, such as a
 * `repartition(columns)` that Spark left out (`AdaptiveSparkPlanExec.optimizeQueryStage`). So the rule runs a second
 * time, without splits.
 *
 * @param advisors what changes the policy of a group
 * @param splits   whether partitions may be split; if not, the rule only decides after Spark reverted its first
 *                 decisions
 * @param decide   formula that makes the decisions; tests replace it
 */
case class DecideShuffleReads(
    session: SparkSession,
    advisors: Seq[Advisor],
    splits: Boolean = true,
    decide: (Seq[Input], Policy) => Decision = Decider.decide
) extends AQEShuffleReadRule
    with Guarded[SparkPlan] {

  /** Empty, as [[ShuffleLeaf.forbids]] decides which shuffles must not change, and gives the reason. */
  override protected val supportedShuffleOrigins: Seq[ShuffleOrigin] = Nil

  override protected def applyGuarded(plan: SparkPlan): SparkPlan =
    if (splits) decideFor(plan, ExchangeGroup.collect(plan))
    else if (PendingDecisions.on(plan).nonEmpty) plan
    else decideFor(plan, ExchangeGroup.collect(plan).map(_.copy(splittable = Splittable.AsAsked)))

  private def decideFor(plan: SparkPlan, groups: Seq[ExchangeGroup]): SparkPlan = {
    val planned = planReads(groups)
    val decided = ValidChanges.applyAll(plan, planned.flatMap(_._2.toOption))(GroupRead.applyAll)
    if (planned.nonEmpty) PendingDecisions.attach(decided, planned)
    decided
  }

  /** Decides only once: the decisions are not in the plan, so Spark cannot revert them. */
  override protected def applyObserved(plan: SparkPlan): SparkPlan = {
    if (splits) PendingDecisions.attachObserved(plan, applyGuarded(plan))
    plan
  }

  private def planReads(groups: Seq[ExchangeGroup]): Seq[PendingDecisions.Pending] = if (groups.isEmpty) Nil
  else {
    val settings = new SessionPolicy(conf, session.sparkContext)
    val slots = settings.clusterSlots.fold(groups.map(_ => Option.empty[Int]))(shareSlots(_, groups))
    groups.zip(slots).map { case (group, share) =>
      // Forbidden groups need none, and it may need the fingerprint of a plan.
      lazy val known = GroupRead.policy(group, settings, advisors, session, share, group.inputBytes)
      val read = group.forbidden
        .orElse(coalescingIsOff(known.policy))
        .toLeft(GroupRead.plan(group, heldRows(group, known), known.policy, decide))
        .flatMap(read => unchangedReason(group, read).toLeft(read))
      group -> read
    }
  }

  /** People switch coalescing off to read each shuffle partition in a task of its own. */
  private def coalescingIsOff(policy: => Policy): Option[String] =
    Option.when(!conf.coalesceShufflePartitionsEnabled && policy.parallelism.isEmpty)(
      s"${SQLConf.COALESCE_PARTITIONS_ENABLED.key} is false"
    )

  /** Memory for each shuffle of a group: what its operators hold, or what an earlier run needed if that is more. */
  private def heldRows(group: ExchangeGroup, known: GroupPolicy): Seq[HeldRows] = {
    val none = group.leaves.map(_ => HeldRows.None)
    if (known.policy.taskMemory.isEmpty) none
    else {
      val estimated = advisors.flatMap(_.heldRows(group)).headOption.getOrElse(none)
      val needed = HeldRows.needed(estimated, group.bytes.map(Bytes.sum))
      known.memoryPerByte
        .filter(_ * group.inputBytes > needed)
        .fold(estimated)(ratio => estimated.map(_ => HeldRows(ratio)))
    }
  }

  /**
   * Reason to keep the layout that Spark planned for a group, if it has splits or local reads that Apportion cannot
   * make.
   */
  private def unchangedReason(group: ExchangeGroup, read: GroupRead): Option[String] = {
    val sparkReads = group.leaves.map(_.node).collect { case reader: AQEShuffleReadExec => reader }
    val isSplit = sparkReads.exists(_.partitionSpecs.exists(_.isInstanceOf[PartialReducerPartitionSpec]))
    if (isSplit && read.decision.splits.isEmpty)
      if (group.splittable.leaves.isEmpty)
        Some(s"Spark split its skewed partitions, and ${group.splittable.notSplit.text}")
      else
        Option.when(conf.getConf(SQLConf.ADAPTIVE_FORCE_OPTIMIZE_SKEWED_JOIN))(
          s"Spark split its skewed partitions, and ${SQLConf.ADAPTIVE_FORCE_OPTIMIZE_SKEWED_JOIN.key} is true"
        )
    else if (sparkReads.exists(_.isLocalRead))
      Splittable.whyNoMapRanges(conf).map(reason => s"Spark reads it locally, and $reason")
    else None
  }

  /**
   * Slots of each group. The groups of a plan fragment run at the same time, so they share the slots by bytes, at
   * least 1 each.
   */
  private def shareSlots(slots: Int, groups: Seq[ExchangeGroup]): Seq[Option[Int]] = {
    val bytes = groups.map(_.inputBytes.toDouble)
    val total = bytes.sum
    bytes.map(groupBytes => Some(if (total > 0) math.round(slots * groupBytes / total).toInt.max(1) else slots))
  }
}
