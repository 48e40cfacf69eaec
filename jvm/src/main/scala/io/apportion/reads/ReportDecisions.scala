package io.apportion.reads

import io.apportion.decision.{Decision, KeySkew, Policy, Sentence}
import io.apportion.decision.memory.HeldRows
import io.apportion.decision.ranges.{Bytes, Ranges}
import io.apportion.groups.{Advisor, ExchangeGroup, GroupRead}
import io.apportion.report.{DecisionRecord, DecisionReporter, ReportSource, ReportedDecision}
import io.apportion.rules.Guarded
import io.apportion.settings.SessionPolicy
import io.apportion.shufflewrites.AdaptiveWrites
import org.apache.spark.apportion.Cluster
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.apportion.exchange.TreeStatistics
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadExec, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec
import org.apache.spark.sql.internal.SQLConf

/** Reports the decisions that are still in the plan after all rules that Spark may revert. */
case class ReportDecisions(
    session: SparkSession,
    advisors: Seq[Advisor],
    sources: Seq[ReportSource]
) extends Guarded[SparkPlan] {

  override protected def applyGuarded(plan: SparkPlan): SparkPlan = report(plan, plan)((_, record) => record)

  override protected def applyObserved(plan: SparkPlan): SparkPlan = {
    val layouts = layoutsIn(plan)
    report(plan, PendingDecisions.takeObserved(plan).getOrElse(plan))(ObservedRead.record(_, _, layouts))
  }

  /**
   * Reports the decisions about a plan.
   *
   * @param plan        plan that runs
   * @param decidedPlan plan with the decided layouts
   * @param describeRun changes the record of a group to describe the plan that runs
   */
  private def report(plan: SparkPlan, decidedPlan: SparkPlan)(
      describeRun: (ExchangeGroup, DecisionRecord) => DecisionRecord
  ): SparkPlan = {
    sources.foreach(_.stageStarts(session))
    val taken = PendingDecisions.take(decidedPlan)
    val pending = if (taken.isEmpty) groupsThatSparkKeeps(plan) else taken
    if (pending.nonEmpty) {
      val layouts = layoutsIn(decidedPlan)
      val decided = pending.map { case (group, read) =>
        val described = describeRun(group, record(group, read, layouts))
        val applied = read.toOption
        ReportedDecision(described, applied.map(_.policy), Some(group), applied.fold(Seq.empty[HeldRows])(_.held))
      }
      new DecisionReporter(session, sources).report(plan, decided)
    }
    plan
  }

  /** Spark runs no shuffle read rules on the last stage of a cached plan. */
  private def groupsThatSparkKeeps(plan: SparkPlan): Seq[PendingDecisions.Pending] =
    if (conf.getConf(SQLConf.ADAPTIVE_EXECUTION_APPLY_FINAL_STAGE_SHUFFLE_OPTIMIZATIONS)) Nil
    else
      ExchangeGroup
        .collect(plan)
        .map(_ -> Left("Spark keeps the partitions of the last stage of a cached plan"))

  private def record(
      group: ExchangeGroup,
      planned: Either[String, GroupRead],
      layouts: Map[Int, AQEShuffleReadExec]
  ): DecisionRecord = {
    val declared = sources.flatMap(_.requirement(group)).headOption
    val reads = group.stages.flatMap(stage => layouts.get(stage.id).map(stage.id -> _))
    val outcome = planned.filterOrElse(
      read =>
        reads.exists { case (id, applied) =>
          applied.isLocalRead || read.layouts.get(id).contains(applied.partitionSpecs)
        },
      "the decided layout would break the partitioning that the plan requires"
    )
    val described = outcome.fold(
      unchanged(group, layouts, _),
      decided(group, _, reads.head._2)
    )
    described.copy(
      operator = group.operator,
      stages = group.stages.map(_.id),
      shuffles = group.stages.flatMap(_.mapStats).map(_.shuffleId),
      levels = group.leaves.flatMap(_.tree).flatMap(_.levels).distinct.sorted,
      blocks = blocksOf(group),
      sparksBlocks = sparksBlocksOf(group),
      bytesReadTwice =
        group.leaves.flatMap(_.tree).map(_.readTwice(described.ranges)).foldLeft(described.bytesReadTwice)(Bytes.add),
      requirement = declared.map(_._1).orElse(described.requirement),
      sentence = described.sentence.and(sources.flatMap(_.remark(group))),
      sources = described.sources ++
        group.leaves.flatMap(leaf => AdaptiveWrites.why(leaf.shuffle)).map("subpartitions" -> _.text) ++
        declared.map("slots" -> _._2.text)
    )
  }

  /** Blocks that map tasks wrote into adaptive shuffles; `None` if there is none. */
  private def blocksOf(group: ExchangeGroup): Option[Long] =
    sum(group.leaves.filter(_.tree.isDefined).flatMap(_.shuffle.metrics.get(TreeStatistics.BlocksMetric)).map(_.value))

  /** Blocks that Spark would have written at most: one for each map task and partition, and at most one for each row. */
  private def sparksBlocksOf(group: ExchangeGroup): Option[Long] =
    sum(group.leaves.filter(_.tree.isDefined).map { leaf =>
      val blocks = leaf.shuffle.numMappers.toLong * conf.numShufflePartitions
      leaf.shuffle.runtimeStatistics.rowCount.fold(blocks)(_.min(blocks).toLong)
    })

  private def sum(counts: Seq[Long]): Option[Long] = counts.reduceOption(Bytes.add)

  private def blocksRemark(group: ExchangeGroup): Option[String] =
    for (blocks <- blocksOf(group); sparks <- sparksBlocksOf(group) if blocks * 2 <= sparks)
      yield s"written in ${Sentence.count(blocks, "block")} instead of up to $sparks"

  /** Apportion's map tasks report the size of each block instead. */
  private def averagesRemark(group: ExchangeGroup, policy: Policy): Option[String] = {
    val most = Cluster.exactSizesUpTo(session.sparkContext)
    val averaged = group.leaves.filter(_.subpartitions > most).exists(_.shuffle.isInstanceOf[ShuffleExchangeExec])
    Option.when(policy.balanced && averaged)(s"Spark knows only average sizes above $most shuffle partitions")
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
        sentence = record.sentence.and(blocksRemark(group) ++ Some("map outputs are read locally"))
      )
    } else {
      val remarks = blocksRemark(group) ++ averagesRemark(group, read.policy) ++ skewRemarks(
        read.decision,
        group.splittable.notSplit.text
      ) ++
        fewKeysRemark(group, read.decision.taskBytes, read.policy) ++ memoryRemark(read.decision, read.policy)
      record.copy(sentence = record.sentence.and(remarks))
    }
  }

  private def skewRemarks(decision: Decision, notSplitAs: String): Seq[String] = {
    val kind = if (decision.splits.exists(_.byKeys)) "large" else "skewed"
    def count(n: Int) = Sentence.count(n, s"$kind shuffle partition")
    val split = Option.when(decision.splits.nonEmpty) {
      val what = if (decision.splits.exists(_.byKeys)) "keep the rows of some keys of" else "read parts of"
      s"${decision.splits.map(_.tasks.size).sum} tasks $what ${count(decision.splits.size)}"
    }
    val whole = Option.when(decision.skewed.nonEmpty)(
      s"${count(decision.skewed.size)} not split, as $notSplitAs"
    )
    split.toSeq ++ whole
  }

  /** Remark on a task whose rows do not fit its memory. A number that is set gets no advice. */
  private def memoryRemark(decision: Decision, policy: Policy): Option[String] =
    policy.taskMemory.filter(decision.largestTaskMemory > _).map { memory =>
      val advice =
        if (policy.parallelism.isDefined) "" else ": spread its keys, aggregate before the shuffle, or use larger slots"
      s"the largest task needs ${Bytes.text(decision.largestTaskMemory)} of memory and may fill ${Bytes.text(memory)}$advice"
    }

  /** Remark on empty tasks. `even_key` only helps if rows are partitioned by the hash of keys. */
  private def fewKeysRemark(group: ExchangeGroup, taskBytes: Array[Long], policy: => Policy): Option[String] = {
    val isByKeys = group.leaves.forall(_.shuffle.outputPartitioning.isInstanceOf[HashPartitioning])
    val empty = if (isByKeys) KeySkew.emptyTasks(taskBytes, policy) else 0
    Option.when(empty > 0)(s"$empty of ${taskBytes.length} tasks are empty; see even_key")
  }

  private def unchanged(group: ExchangeGroup, layouts: Map[Int, AQEShuffleReadExec], why: String): DecisionRecord = {
    val taskBytes = ObservedRead.taskBytes(group, layouts)
    val record = DecisionRecord.unchanged(why, group.leaves.map(_.subpartitions).max, taskBytes)
    def policy = GroupRead.policy(group, new SessionPolicy(conf, session.sparkContext), advisors, session).policy
    record.copy(sentence = record.sentence.and(fewKeysRemark(group, taskBytes, policy)))
  }

  private def layoutsIn(plan: SparkPlan): Map[Int, AQEShuffleReadExec] =
    plan.collect { case read @ AQEShuffleReadExec(stage: ShuffleQueryStageExec, _) => stage.id -> read }.toMap
}
