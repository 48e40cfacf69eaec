package io.apportion.decision

import java.util.Locale

import io.apportion.decision.Sentence.count
import io.apportion.decision.ranges.Bytes

/** A sentence to which remarks can be added; its text has no full stop yet. */
final case class Sentence(text: String) {
  def and(remarks: Iterable[String]): Sentence = Sentence((text +: remarks.toSeq).mkString(", "))

  override def toString: String = s"$text."
}

object Sentence {

  /** A number of things, such as `1 task` or `8 tasks`. */
  def count(n: Long, noun: String): String = if (n == 1) s"1 $noun" else s"$n ${noun}s"
}

/** Writes a decision as a sentence, such as `8 tasks: 512 MiB at 64 MiB per task (session setting).` */
private[decision] object Reason {

  /** Minimum ratio of task size to target size for which the reason states the ratio. */
  private val Severe = 4

  def of(decision: Decision, policy: Policy): Sentence = {
    val isByBytes = !decision.clamps.headOption.exists(Set[Clamp](Kind.Explicit, Kind.Source))
    val start = Option.when(isByBytes)(formula(decision, policy))
    val halved = decision.halves.map(n => s"divided into $n so that no task is much larger than Spark's")
    val rest =
      decision.clamps.map(step(_, decision, policy)) ++ halved ++ layout(decision, policy) ++ noWaves(policy)
    Sentence(s"${count(decision.tasks.toLong, "task")}: ${(start ++ rest).mkString(", ")}")
  }

  /** Bytes and target size, then their result if it differs from the number of tasks. */
  private def formula(decision: Decision, policy: Policy): String = {
    val rows = if (policy.rowBytes) s" of rows${source("volume.measure", policy)}" else ""
    val target = s"${Bytes.text(policy.dataVolumePerTask)} per task${source("dataVolumePerTask", policy)}"
    val taken = policy.dataVolumePerTask - policy.volumeBeside(decision.broadcastBytes)
    val broadcast = if (taken > 0) s" less ${Bytes.text(taken)} for broadcasts" else ""
    val raw = decision.raw.max(1)
    val result =
      if (decision.rounded.max(1) != raw) s" makes $raw, rounded to ${decision.rounded} (power of two)"
      else if (raw != decision.tasks) s" makes $raw"
      else ""
    s"${Bytes.text(decision.inputBytes)}$rows at $target$broadcast$result"
  }

  /** What a limit did to the number of tasks. */
  private def step(clamp: Clamp, decision: Decision, policy: Policy): String = clamp match {
    case Kind.Explicit => s"parallelism is set to ${policy.parallelism.mkString}${source("parallelism", policy)}"
    case Kind.Minimum  =>
      s"raised to ${policy.lowerBound} by minParallelism ${policy.minParallelism}${source("minParallelism", policy)}"
    case Kind.Maximum =>
      s"lowered to ${policy.upperBound} by maxParallelism ${policy.maxParallelism}${source("maxParallelism", policy)}"
    case Kind.Reactive =>
      s"raised to use ${policy.slots.mkString} slots with ${Bytes.text(policy.minTaskVolume)} or more per task"
    case Kind.FanIn if decision.widestRange == policy.maxSubpartitionsPerTask =>
      val limit = count(policy.maxSubpartitionsPerTask.toLong, "shuffle partition")
      s"raised so that no task reads more than $limit${source("maxSubpartitionsPerTask", policy)}"
    case Kind.FanIn =>
      val limit = count(policy.maxBlocksPerRange, "block")
      s"raised so that no task fetches more than $limit"
    case Kind.Memory =>
      val memory = s"each task may fill ${Bytes.text(policy.taskMemory.get)}${source("memory", policy)}"
      s"raised as the rows need ${Bytes.text(decision.heldMemory)} of memory and $memory"
    case Kind.Waves =>
      s"rounded to ${decision.parallelism} for full waves on ${policy.steadySlots.mkString} slots"
    case Kind.Subpartitions =>
      val limit = count(decision.subpartitions.max(1).toLong, "shuffle partition")
      decision.limitedByPartitions.filter(_ >= Severe).fold(s"limited to $limit") { ratio =>
        s"limited by $limit: tasks read ${"%.1f".formatLocal(Locale.ROOT, ratio)} times the target size"
      }
    case Kind.Source => "the stage has no inputs: sources.defaultParallelism"
  }

  private def layout(decision: Decision, policy: Policy): Option[String] =
    Option.when(policy.balanced && decision.ranges.size > 0)(
      s"in ${count(decision.ranges.size.toLong, "balanced range")}${source("ranges", policy)}"
    )

  private def noWaves(policy: Policy): Option[String] =
    Option.when(policy.balanced && policy.rounding == Rounding.Waves && policy.steadySlots.isEmpty)(
      "not rounded to waves, as the number of slots is unknown or may change"
    )

  private def source(setting: String, policy: Policy): String =
    policy.setBy.get(setting).fold("")(source => s" (${source.text})")
}
