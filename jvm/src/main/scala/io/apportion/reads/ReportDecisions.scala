package io.apportion.reads

import io.apportion.decision.{Decision, KeySkew, Policy}
import io.apportion.decision.ranges.{Bytes, Ranges}
import io.apportion.groups.{ExchangeGroup, GroupRead, ShuffleLeaf}
import io.apportion.report.{DecisionRecord, DecisionReporter, OptimizedPlan, SlotTracker}
import io.apportion.rules.Guarded
import io.apportion.settings.{SessionPolicy, Settings}
import io.apportion.sizing.SubpartitionCounts
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.execution.{
  CoalescedMapperPartitionSpec,
  CoalescedPartitionSpec,
  PartialMapperPartitionSpec,
  PartialReducerPartitionSpec,
  ShufflePartitionSpec,
  SparkPlan
}
import org.apache.spark.sql.execution.adaptive.AQEShuffleReadExec
import org.apache.spark.sql.internal.SQLConf

/** Reports the decisions as they ended up in the plan, after all rules that Spark may take back. */
case class ReportDecisions(session: SparkSession, slotTracker: SlotTracker) extends Guarded[SparkPlan] {

  override protected def applyGuarded(plan: SparkPlan): SparkPlan = report(plan, plan)((_, record) => record)

  override protected def applyObserved(plan: SparkPlan): SparkPlan = {
    val layouts = layoutsIn(plan)
    report(plan, PendingDecisions.takeObserved(plan).getOrElse(plan))(ObservedRead.record(_, _, layouts))
  }

  /**
   * @param decidedPlan the plan as it was decided
   * @param ofRun       the record of a group with what happens in the plan that runs
   */
  private def report(plan: SparkPlan, decidedPlan: SparkPlan)(
      ofRun: (ExchangeGroup, DecisionRecord) => DecisionRecord
  ): SparkPlan = {
    if (Settings.EventsEnabled.get(conf)) OptimizedPlan.announce(session)
    val taken = PendingDecisions.take(decidedPlan)
    val pending = if (taken.isEmpty) groupsThatSparkKeeps(plan) else taken
    if (pending.nonEmpty) {
      val layouts = layoutsIn(decidedPlan)
      val decided = pending.map { case (group, read) => group -> ofRun(group, record(group, read, layouts)) }
      new DecisionReporter(session, slotTracker)
        .report(plan, decided.map { case (group, record) => record -> group.bytes })
      DecisionTexts.mark(plan, decided)
    }
    plan
  }

  /** In the last stage of a plan that is cached no shuffle read rule runs. */
  private def groupsThatSparkKeeps(plan: SparkPlan): Seq[PendingDecisions.Pending] =
    if (conf.getConf(SQLConf.ADAPTIVE_EXECUTION_APPLY_FINAL_STAGE_SHUFFLE_OPTIMIZATIONS)) Nil
    else
      ExchangeGroup
        .collect(plan)
        .map(_ -> Left("Spark keeps the partitions of the last stage of a plan that is cached"))

  private def record(
      group: ExchangeGroup,
      planned: Either[String, GroupRead],
      layouts: Map[Int, AQEShuffleReadExec]
  ): DecisionRecord = {
    val reads = group.stages.flatMap(stage => layouts.get(stage.id).map(stage.id -> _))
    val outcome = planned.filterOrElse(
      read =>
        reads.exists { case (id, seen) => seen.isLocalRead || read.layouts.get(id).contains(seen.partitionSpecs) },
      "another layout would break what the plan requires of its partitions"
    )
    val found = outcome.fold(
      leftAlone(group, reads.map(_._2.partitionSpecs), _),
      decided(group, _, reads.head._2)
    )
    found.copy(
      operator = group.operator,
      stages = group.stages.map(_.id),
      shuffles = group.stages.flatMap(_.mapStats).map(_.shuffleId),
      sources =
        found.sources ++ group.leaves.flatMap(leaf => SubpartitionCounts.why(leaf.shuffle)).map("subpartitions" -> _)
    )
  }

  private def decided(group: ExchangeGroup, read: GroupRead, layout: AQEShuffleReadExec): DecisionRecord = {
    val record = DecisionRecord.of(read.decision, read.policy)
    if (layout.isLocalRead) {
      val tasks = layout.partitionSpecs.size
      val meanTaskBytes = record.inputBytes / tasks
      record.copy(
        tasks = tasks,
        meanTaskBytes = meanTaskBytes,
        largestTaskBytes = meanTaskBytes,
        ranges = Ranges.none,
        layout = "local",
        reason = withRemark(record.reason, "reading map outputs locally")
      )
    } else {
      val remarks = skewRemarks(read.decision, group.splittable.otherwise) ++
        fewKeysRemark(group, read.decision.taskBytes, read.policy)
      record.copy(reason = remarks.foldLeft(record.reason)(withRemark))
    }
  }

  private def skewRemarks(decision: Decision, notSplitAs: String): Seq[String] = {
    def count(n: Int) = if (n == 1) "1 subpartition" else s"$n subpartitions"
    val split = Option.when(decision.splits.nonEmpty)(
      s"${decision.splits.map(_.tasks.size).sum} tasks for parts of ${count(decision.splits.size)} too large for one task"
    )
    val whole = Option.when(decision.skewed.nonEmpty)(
      s"with ${count(decision.skewed.size)} too large for one task but not split, as $notSplitAs"
    )
    split.toSeq ++ whole
  }

  /** Surrogates of keys help only where rows are partitioned by the hash of keys. */
  private def fewKeysRemark(group: ExchangeGroup, taskBytes: Array[Long], policy: => Policy): Option[String] = {
    val isByKeys = group.leaves.forall(_.shuffle.outputPartitioning.isInstanceOf[HashPartitioning])
    val empty = if (isByKeys) KeySkew.beside(taskBytes, policy) else 0
    Option.when(empty > 0)(s"$empty of ${taskBytes.length} tasks empty; see even_key")
  }

  private def withRemark(reason: String, remark: String): String = s"${reason.stripSuffix(".")}, $remark."

  private def leftAlone(group: ExchangeGroup, layouts: Seq[Seq[ShufflePartitionSpec]], why: String): DecisionRecord = {
    val isLocal = layouts.flatten.exists(isOfMapTasks)
    val taskBytes =
      if (isLocal) Array.fill(layouts.head.size)(group.inputBytes / layouts.head.size)
      else Bytes.sumEach(if (layouts.isEmpty) group.bytes else layouts.map(_.map(bytesOf).toArray))
    val record = DecisionRecord.leftAlone(why, group.leaves.map(_.subpartitions).max, taskBytes)
    def policy = GroupRead.policy(group, new SessionPolicy(conf, session.sparkContext), None)
    record.copy(reason = fewKeysRemark(group, taskBytes, policy).foldLeft(record.reason)(withRemark))
  }

  private def isOfMapTasks(spec: ShufflePartitionSpec): Boolean = spec match {
    case _: PartialMapperPartitionSpec | _: CoalescedMapperPartitionSpec => true
    case _                                                               => false
  }

  private def bytesOf(spec: ShufflePartitionSpec): Long = spec match {
    case PartialReducerPartitionSpec(_, _, _, size) => size
    case CoalescedPartitionSpec(_, _, size)         => size.getOrElse(0L)
    case _                                          => 0L
  }

  private def layoutsIn(plan: SparkPlan): Map[Int, AQEShuffleReadExec] =
    plan
      .collect { case read @ ShuffleLeaf(ShuffleLeaf(_, _, Some(stage))) => stage.id -> read }
      .collect { case (id, read: AQEShuffleReadExec) =>
        id -> read
      }
      .toMap
}
