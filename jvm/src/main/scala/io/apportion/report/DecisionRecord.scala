package io.apportion.report

import java.sql.Timestamp

import io.apportion.decision.{Decision, Kind, Policy, ResourceRequirement, Sentence}
import io.apportion.decision.ranges.{Bytes, Ranges}

/**
 * A decision about one group of shuffles or about a scan, as Apportion reports it. [[DecisionTable.schema]] describes the fields. Fields
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
    sentence = Sentence(s"Observed: ${sentence.text}; Spark runs ${Sentence.count(sparksTasks, "task")}")
  )

  /** Slots to request: fewer than the tasks if tasks were only added to fill registered slots. */
  def slotsAskedFor: Int = requirement.fold(tasks)(_.target.min(tasks))
}

object DecisionRecord {

  /** The layout of a record in the mode `observe`. */
  val Observed = "observed"

  def of(decision: Decision, policy: Policy): DecisionRecord = DecisionRecord(
    inputBytes = decision.inputBytes,
    broadcastBytes = decision.broadcastBytes,
    dataVolumePerTask = Some(policy.dataVolumePerTask),
    broadcastCap = Some(policy.broadcastCap),
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
      broadcastCap = Some(0),
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
}
