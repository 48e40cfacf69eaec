package io.apportion.report

import java.sql.Timestamp

import io.apportion.decision.{Decision, Kind, Policy, ResourceRequirement, Sentence}
import io.apportion.decision.ranges.{Bytes, Ranges}
import io.apportion.util.TableColumns
import io.apportion.util.TableColumns.column
import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.expressions.GenericRowWithSchema
import org.apache.spark.sql.types._

/**
 * A decision about one group of shuffles or about a scan, as Apportion reports it. [[DecisionRecord.schema]] describes the fields. Fields
 * of the query are empty outside of a query, and fields of the formula are empty for an unchanged group.
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
    levels: Seq[Int] = Nil,
    blocks: Option[Long] = None,
    sparksBlocks: Option[Long] = None,
    bytesReadTwice: Long = 0,
    parallelism: Int,
    tasks: Int,
    ranges: Ranges = Ranges.none,
    layout: String,
    largestTaskBytes: Long,
    meanTaskBytes: Long,
    sources: Map[String, String] = Map.empty,
    kind: String,
    sentence: Sentence,
    requirement: Option[ResourceRequirement] = None,
    slots: Option[Int] = None,
    slotsLost: Int = 0,
    limitedByPartitions: Option[Double] = None,
    largestTaskMemory: Option[Long] = None,
    taskMemory: Option[Long] = None,
    outcome: Option[Outcome] = None
) {

  /** The decision in one sentence. */
  def reason: String = sentence.toString

  /** The record with the registered slots, and the number of slots that the query has lost. */
  def on(slots: Int, lost: Int): DecisionRecord = {
    val had = slots + lost
    val remark = Option.when(lost > 0)(s"degraded: $slots of $had slots are left")
    copy(slots = Some(slots), slotsLost = lost, sentence = sentence.and(remark))
  }

  /** The record of a decision that is not applied, with the tasks of Spark's plan and their largest and mean bytes. */
  def observed(sparksTasks: Int, largest: Long, mean: Long): DecisionRecord = copy(
    tasks = sparksTasks,
    ranges = Ranges.none,
    layout = DecisionRecord.Observed,
    largestTaskBytes = largest,
    meanTaskBytes = mean,
    sentence = Sentence(
      s"Observed: ${sentence.text}; Spark runs ${if (sparksTasks == 1) "1 task" else s"$sparksTasks tasks"}"
    )
  )

  /** Slots to request: fewer than the tasks if tasks were only added to fill registered slots. */
  def slotsAskedFor: Int = requirement.fold(tasks)(_.target.min(tasks))

  /** The record as a row of [[DecisionRecord.schema]]. */
  def toRow: Row =
    new GenericRowWithSchema(DecisionRecord.columns.map(_.value(this)).toArray[Any], DecisionRecord.schema)
}

object DecisionRecord {

  /** The layout of a record in the mode `observe`. */
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
    layout =
      if (decision.splits.exists(_.byKeys)) "keys"
      else if (decision.splits.nonEmpty) "skew"
      else if (policy.balanced) "balanced"
      else "even",
    largestTaskBytes = decision.largestTaskBytes,
    meanTaskBytes = decision.meanTaskBytes,
    bytesReadTwice = decision.readForKeys,
    sources = policy.setBy.map { case (setting, source) => setting -> source.text },
    kind = decision.kind.name,
    sentence = decision.sentence,
    requirement = Some(requirementOf(decision, policy)),
    limitedByPartitions = decision.limitedByPartitions,
    largestTaskMemory = policy.taskMemory.map(_ => decision.largestTaskMemory),
    taskMemory = policy.taskMemory
  )

  /** By the bytes, or all slots if the stage may fill them, or exactly the number that is set. */
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

  /** The record of a scan that reads pieces of `size` bytes. */
  def ofSource(operator: String, decision: Decision, policy: Policy, tasks: Int, size: Long): DecisionRecord =
    of(decision, policy).copy(
      operator = operator,
      tasks = tasks,
      layout = "files",
      largestTaskBytes = size.min(decision.inputBytes),
      meanTaskBytes = decision.inputBytes / tasks
    )

  /** The record of an unchanged group, whose tasks read these bytes. */
  def unchanged(why: String, subpartitions: Int, taskBytes: Array[Long]): DecisionRecord = {
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
      sentence = Sentence(s"Unchanged: $why")
    )
  }

  /** A column of `apportion_decisions()`, and its value in a record. */
  private final case class Column(field: StructField, value: DecisionRecord => Any)

  private def col(name: String, dataType: DataType, doc: String)(value: DecisionRecord => Any): Column =
    Column(column(name, dataType, doc), value)

  private val columns: Seq[Column] = Seq(
    col("query", LongType, "SQL execution id of the query")(_.query.orNull),
    col("group", IntegerType, "number of the group of shuffles within its query")(_.group),
    col("decided_at", TimestampType, "time of the decision")(_.decidedAt),
    col("operator", StringType, "operator that reads the shuffles, or the scan")(_.operator),
    col("stages", ArrayType(IntegerType), "ids of the query stages that are read")(_.stages),
    col("shuffles", ArrayType(IntegerType), "ids of the shuffles that are read")(_.shuffles),
    col(
      "input_bytes",
      LongType,
      "stored bytes of the shuffles; with `volume.measure=estimated`, bytes of their rows; for files, bytes of the columns that " +
        "are read plus the cost of opening the files"
    )(_.inputBytes),
    col("broadcast_bytes", LongType, "bytes of the broadcasts that each task also reads")(_.broadcastBytes),
    col("data_volume_per_task", LongType, "target size per task, in bytes")(_.dataVolumePerTask.orNull),
    col("broadcast_cap", LongType, "maximum share of the target size for broadcasts, in bytes")(_.broadcastCap.orNull),
    col("raw", LongType, "tasks that the target size asks for")(_.raw.orNull),
    col(
      "rounded",
      LongType,
      "`raw` after rounding: to the nearest power of two, or as `rounding` says; for scans, not rounded"
    )(_.rounded.orNull),
    col("clamps", ArrayType(StringType), "limits that changed the number, in order")(_.clamps),
    col("subpartitions", IntegerType, "shuffle partitions of each shuffle, the maximum number of ranges")(
      _.subpartitions
    ),
    col(
      "levels",
      ArrayType(IntegerType),
      "numbers of groups of shuffle partitions that map tasks wrote; empty if Spark wrote the shuffles"
    )(_.levels),
    col("blocks", LongType, "blocks that map tasks wrote; null if Spark wrote the shuffles")(_.blocks.orNull),
    col("sparks_blocks", LongType, "blocks that Spark would have written at most")(_.sparksBlocks.orNull),
    col("bytes_read_twice", LongType, "bytes that tasks read beyond those of their own shuffle partitions")(
      _.bytesReadTwice
    ),
    col(
      "parallelism",
      IntegerType,
      "tasks that were decided, before ranges are halved or split; with `mode=observe`, tasks that Apportion would have decided"
    )(_.parallelism),
    col("tasks", IntegerType, "tasks that Spark launches")(_.tasks),
    col(
      "ranges",
      ArrayType(StructType(Seq(StructField("start", IntegerType), StructField("end", IntegerType)))),
      "shuffle partitions that each task reads, the end excluded; empty for local reads and unchanged groups"
    )(_.ranges.toSeq.map { case (start, end) => Row(start, end) }),
    col(
      "layout",
      StringType,
      "even, balanced, skew (parts of map outputs), keys (parts of keys), local, files, unchanged, or observed (Spark's layout)"
    )(_.layout),
    col(
      "largest_task_bytes",
      LongType,
      "bytes that the largest task reads; for local reads the mean, for scans the maximum"
    )(_.largestTaskBytes),
    col("mean_task_bytes", LongType, "bytes that a task reads on average")(_.meanTaskBytes),
    col("sources", MapType(StringType, StringType), "source of each setting's value, by the name of the setting")(
      _.sources
    ),
    col("kind", StringType, "limit that decided in the end, or the formula")(_.kind),
    col("reason", StringType, "the decision in one sentence")(_.reason),
    col("requirement", TableColumns.Requirement, "task slots that the stage declares: min, target and max")(
      _.requirement.map(TableColumns.requirement).orNull
    ),
    col("slots", IntegerType, "task slots of the registered executors")(_.slots.orNull),
    col("slots_lost", IntegerType, "task slots that the query had lost at the time of the decision")(_.slotsLost),
    col(
      "limited_by_partitions",
      DoubleType,
      "tasks that the bytes ask for, as a multiple of the shuffle partitions; null if there are enough partitions"
    )(_.limitedByPartitions.orNull),
    col(
      "largest_task_memory",
      LongType,
      "bytes of execution memory for the rows that the largest task holds; null if `memory.enabled` is false"
    )(_.largestTaskMemory.orNull),
    col("task_memory", LongType, "bytes of execution memory that the rows of a task may fill")(_.taskMemory.orNull),
    col(
      "outcome",
      Outcome.schema,
      "what happened when the tasks ran; null until the stage has ended. It has the id of the Spark stage, " +
        "the bytes spilled to disk, and the largest execution memory of a task. Times are in milliseconds. " +
        "Failures are attempts of tasks"
    )(_.outcome.map(_.toRow).orNull)
  )

  /** The columns of `apportion_decisions()`, each with its description as a comment. */
  val schema: StructType = StructType(columns.map(_.field))
}
