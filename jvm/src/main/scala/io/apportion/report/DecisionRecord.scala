package io.apportion.report

import java.sql.Timestamp

import io.apportion.decision.{Decision, Kind, Policy, ResourceRequirement}
import io.apportion.decision.ranges.{Bytes, Ranges}
import io.apportion.rules.TableColumns
import io.apportion.rules.TableColumns.column
import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.expressions.GenericRowWithSchema
import org.apache.spark.sql.types._

/**
 * What was decided for one group of exchanges of a query, as it is reported; the fields are the columns of
 * [[DecisionRecord.schema]], where each is explained. What only a query or only a decision has is empty without one.
 */
final case class DecisionRecord(
    query: Option[Long] = None,
    group: Int = 0,
    decidedAt: Timestamp = new Timestamp(System.currentTimeMillis()),
    operator: String = "",
    stages: Seq[Int] = Nil,
    shuffles: Seq[Int] = Nil,
    inputBytes: Long,
    broadcastBytes: Long,
    dataVolumePerTask: Option[Long] = None,
    broadcastCap: Option[Long] = None,
    raw: Option[Long] = None,
    rounded: Option[Long] = None,
    clamps: Seq[String] = Nil,
    subpartitions: Int,
    parallelism: Int,
    tasks: Int,
    ranges: Ranges = Ranges.none,
    layout: String,
    largestTaskBytes: Long,
    meanTaskBytes: Long,
    sources: Map[String, String] = Map.empty,
    kind: String,
    reason: String,
    requirement: Option[ResourceRequirement] = None,
    slots: Option[Int] = None,
    slotsLost: Int = 0,
    limitedByPartitions: Option[Double] = None
) {

  /** The record with the slots that were there, and how many fewer these were than the query had before. */
  def on(slots: Int, lost: Int): DecisionRecord = {
    val had = slots + lost
    val remark = if (lost > 0) s", degraded: $slots of $had slots are left." else "."
    copy(slots = Some(slots), slotsLost = lost, reason = reason.stripSuffix(".") + remark)
  }

  /** The record of a decision that is not applied: Spark's own plan has these tasks, which read these bytes. */
  def observed(sparksTasks: Int, largest: Long, mean: Long): DecisionRecord = copy(
    tasks = sparksTasks,
    ranges = Ranges.none,
    layout = DecisionRecord.Observed,
    largestTaskBytes = largest,
    meanTaskBytes = mean,
    reason =
      s"Observed: ${reason.stripSuffix(".")}; Spark runs ${if (sparksTasks == 1) "1 task" else s"$sparksTasks tasks"}."
  )

  /** The slots that its tasks ask for: fewer than the tasks if more were made to fill slots that happened to be registered. */
  def slotsAskedFor: Int = requirement.fold(tasks)(_.target.min(tasks))

  /** The record as a row of [[DecisionRecord.schema]]. */
  def toRow: Row = new GenericRowWithSchema(
    Array(
      query.orNull,
      group,
      decidedAt,
      operator,
      stages,
      shuffles,
      inputBytes,
      broadcastBytes,
      dataVolumePerTask.orNull,
      broadcastCap.orNull,
      raw.orNull,
      rounded.orNull,
      clamps,
      subpartitions,
      parallelism,
      tasks,
      ranges.toSeq.map { case (start, end) => Row(start, end) },
      layout,
      largestTaskBytes,
      meanTaskBytes,
      sources,
      kind,
      reason,
      requirement.map(TableColumns.requirement).orNull,
      slots.orNull,
      slotsLost,
      limitedByPartitions.orNull
    ),
    DecisionRecord.schema
  )
}

object DecisionRecord {

  /** The layout of what Spark decides while Apportion observes. */
  val Observed = "observed"

  def of(decision: Decision, policy: Policy): DecisionRecord = DecisionRecord(
    inputBytes = decision.inputBytes,
    broadcastBytes = decision.broadcastBytes,
    dataVolumePerTask = Some(decision.dataVolumePerTask),
    broadcastCap = Some(decision.broadcastCap),
    raw = Some(decision.raw),
    rounded = Some(decision.rounded),
    clamps = decision.clamps.map(_.name),
    subpartitions = decision.subpartitions,
    parallelism = decision.parallelism,
    tasks = decision.tasks,
    ranges = decision.ranges,
    layout = if (decision.splits.nonEmpty) "skew" else if (policy.balanced) "balanced" else "even",
    largestTaskBytes = decision.largestTaskBytes,
    meanTaskBytes = decision.meanTaskBytes,
    sources = policy.setBy,
    kind = decision.kind.name,
    reason = decision.reason,
    requirement = Some(requirementOf(decision, policy)),
    limitedByPartitions = decision.limitedByPartitions
  )

  /** Of what was decided: the bytes' number, all slots where these may be filled, or what somebody set. */
  private def requirementOf(decision: Decision, policy: Policy): ResourceRequirement = {
    val subpartitions = if (decision.subpartitions > 0) decision.subpartitions else Int.MaxValue
    val most = policy.upperBound.min(subpartitions).max(decision.tasks)
    if (decision.clamps.headOption.contains(Kind.Explicit)) ResourceRequirement.explicitly(decision.tasks)
    else if (policy.slots.isDefined && policy.declaresSlots) ResourceRequirement.reactive(most)
    else if (decision.clamps.contains(Kind.Reactive))
      ResourceRequirement.active(
        decision.rounded.max(policy.lowerBound.toLong).min(most.min(decision.tasks).toLong).toInt,
        most
      )
    else ResourceRequirement.active(decision.tasks, most)
  }

  /** The record of a source that is read in pieces of `size` bytes. */
  def ofSource(operator: String, decision: Decision, policy: Policy, tasks: Int, size: Long): DecisionRecord =
    of(decision, policy).copy(
      operator = operator,
      tasks = tasks,
      layout = "files",
      largestTaskBytes = size.min(decision.inputBytes),
      meanTaskBytes = decision.inputBytes / tasks
    )

  /** The record of a group that is left alone, and of the bytes that each of its tasks reads. */
  def leftAlone(why: String, subpartitions: Int, taskBytes: Array[Long]): DecisionRecord = {
    val inputBytes = Bytes.sum(taskBytes)
    DecisionRecord(
      inputBytes = inputBytes,
      broadcastBytes = 0,
      subpartitions = subpartitions,
      parallelism = taskBytes.length,
      tasks = taskBytes.length,
      layout = "unchanged",
      largestTaskBytes = Bytes.largest(taskBytes),
      meanTaskBytes = if (taskBytes.isEmpty) 0 else inputBytes / taskBytes.length,
      kind = "unchanged",
      reason = s"Left alone: $why."
    )
  }

  /** The columns of `apportion_decisions()`, each with what it holds. */
  val schema: StructType = StructType(
    Seq(
      column("query", LongType, "SQL execution id of the query"),
      column("group", IntegerType, "number of the group of exchanges within its query"),
      column("decided_at", TimestampType, "when it was decided"),
      column("operator", StringType, "what reads the shuffles, or scans files"),
      column("stages", ArrayType(IntegerType), "ids of the query stages that are read"),
      column("shuffles", ArrayType(IntegerType), "ids of the shuffles that are read"),
      column(
        "input_bytes",
        LongType,
        "bytes of the shuffles, as stored, or of their rows with volume.measure=estimated; of files, those of the columns that are read, with what each file costs to open"
      ),
      column("broadcast_bytes", LongType, "bytes of the broadcasts that each task reads as well"),
      column("data_volume_per_task", LongType, "bytes that a task should read"),
      column("broadcast_cap", LongType, "the most bytes of a task's volume that broadcasts can take up"),
      column("raw", LongType, "tasks that the volume asks for"),
      column(
        "rounded",
        LongType,
        "that number as it was rounded: to the nearest power of two, or as `rounding` says; of scans, the same number"
      ),
      column("clamps", ArrayType(StringType), "limits that changed the number, in order"),
      column("subpartitions", IntegerType, "subpartitions of each shuffle, the most tasks there can be"),
      column(
        "parallelism",
        IntegerType,
        "tasks that were decided; with `mode=observe`, the tasks that Apportion would have decided"
      ),
      column("tasks", IntegerType, "tasks that Spark launches"),
      column(
        "ranges",
        ArrayType(StructType(Seq(StructField("start", IntegerType), StructField("end", IntegerType)))),
        "subpartitions that each task reads, the end excluded; none where map outputs are read locally or nothing was decided"
      ),
      column(
        "layout",
        StringType,
        "even, balanced, skew (ranges beside parts of subpartitions), local, files, unchanged, or observed (with `mode=observe`: Spark's layout)"
      ),
      column(
        "largest_task_bytes",
        LongType,
        "bytes that the largest task reads; the mean where map outputs are read locally, the most where files are scanned"
      ),
      column("mean_task_bytes", LongType, "bytes that a task reads on average"),
      column(
        "sources",
        MapType(StringType, StringType),
        "who set each setting: a name of a setting to where its value comes from"
      ),
      column("kind", StringType, "what decided in the end"),
      column("reason", StringType, "the decision in one sentence"),
      column(
        "requirement",
        TableColumns.Requirement,
        "slots that the stage declares: least, wanted, and the most that it can use"
      ),
      column("slots", IntegerType, "slots of the executors that were registered"),
      column("slots_lost", IntegerType, "slots that the query had before, and had lost when it was decided"),
      column(
        "limited_by_partitions",
        DoubleType,
        "how many times as many tasks as there were shuffle partitions the bytes asked for; null where the partitions were enough"
      )
    )
  )
}
