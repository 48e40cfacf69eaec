package io.apportion.aqe

import io.apportion.Guarded
import io.apportion.conf.Settings
import io.apportion.decision.{Bytes, Ranges}
import io.apportion.report.{DecisionLog, DecisionRecord, Executions}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.{ShufflePartitionSpec, SparkPlan}
import org.apache.spark.sql.execution.adaptive.AQEShuffleReadExec
import org.apache.spark.sql.internal.SQLConf

/** Reports the decisions as they ended up in the plan, after all rules that Spark may take back. */
case class ReportDecisions(session: SparkSession) extends Guarded[SparkPlan] {

  override protected def applyGuarded(plan: SparkPlan): SparkPlan = {
    val decided = PendingDecisions.take(plan)
    val pending = if (decided.isEmpty) groupsThatSparkKeeps(plan) else decided
    if (pending.nonEmpty) {
      val query = Executions.current(session)
      val layouts = layoutsIn(plan)
      val records = pending.map { case (group, read) => record(group, read, layouts).copy(query = query) }
      DecisionLog.of(Executions.owner(query, session)).add(records, Settings.RetainedDecisions.get(conf))
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
    val found = outcome.fold(leftAlone(group, reads.map(_._2.partitionSpecs), _), decided(_, reads.head._2))
    found.copy(
      operator = group.operator,
      stages = group.stages.map(_.id),
      shuffles = group.stages.map(_.shuffle.shuffleId),
      sources =
        found.sources ++ group.leaves.flatMap(leaf => SubpartitionCounts.why(leaf.shuffle)).map("subpartitions" -> _)
    )
  }

  private def decided(read: GroupRead, layout: AQEShuffleReadExec): DecisionRecord = {
    val record = DecisionRecord.of(read.decision, read.policy)
    val splits = read.splits
    val inputBytes = splits.taskBytes.foldLeft(record.inputBytes)(Bytes.add)
    val meanTaskBytes = inputBytes / layout.partitionSpecs.size
    val found = record.copy(inputBytes = inputBytes, tasks = layout.partitionSpecs.size, meanTaskBytes = meanTaskBytes)
    if (layout.isLocalRead)
      found.copy(
        ranges = Ranges.none,
        layout = "local",
        largestTaskBytes = meanTaskBytes,
        reason = withRemark(record.reason, "reading map outputs locally")
      )
    else if (splits.tasks > 0)
      found.copy(
        ranges = read.ranges,
        layout = "skew",
        largestTaskBytes = (record.largestTaskBytes +: splits.taskBytes).max,
        reason = withRemark(
          record.reason,
          s"beside ${splits.tasks} that read parts of ${splits.subpartitions.size} that Spark split for skew"
        )
      )
    else found
  }

  private def withRemark(reason: String, remark: String): String = s"${reason.stripSuffix(".")}, $remark."

  private def leftAlone(group: ExchangeGroup, layouts: Seq[Seq[ShufflePartitionSpec]], why: String): DecisionRecord = {
    val bytesByInput = if (layouts.isEmpty) group.bytes else layouts.map(_.map(SkewSplits.bytes).toArray)
    DecisionRecord.leftAlone(why, group.leaves.map(_.subpartitions).max, Bytes.sumEach(bytesByInput))
  }

  private def layoutsIn(plan: SparkPlan): Map[Int, AQEShuffleReadExec] =
    plan
      .collect { case read @ ShuffleLeaf(ShuffleLeaf(_, _, Some(stage), _)) => stage.id -> read }
      .collect { case (id, read: AQEShuffleReadExec) =>
        id -> read
      }
      .toMap
}
