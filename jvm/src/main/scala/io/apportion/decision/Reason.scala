package io.apportion.decision

import java.util.Locale

import io.apportion.decision.ranges.Bytes

/** Writes a decision as a sentence, such as `8 tasks: 512 MiB at 64 MiB per task (session setting).` */
private[decision] object Reason {

  /** Minimum ratio of task size to target size for which the reason states the ratio. */
  private val Severe = 4

  def of(
      chosen: ClampedTasks,
      tasks: Int,
      inputBytes: Long,
      broadcastTaken: Long,
      raw: Long,
      rounded: Long,
      subpartitions: Int,
      limitedBy: Option[Double],
      maxWidth: Int,
      ranges: Int,
      halved: Option[Int],
      heldBytes: Long,
      policy: Policy
  ): String = {
    val steps = chosen.clamps.map {
      case Kind.Explicit => s"parallelism is set to ${policy.parallelism.mkString}${source("parallelism", policy)}"
      case Kind.Minimum  =>
        s"raised to ${policy.lowerBound} by minParallelism ${policy.minParallelism}${source("minParallelism", policy)}"
      case Kind.Maximum =>
        s"lowered to ${policy.upperBound} by maxParallelism ${policy.maxParallelism}${source("maxParallelism", policy)}"
      case Kind.Reactive =>
        s"raised to use ${policy.slots.mkString} slots with ${Bytes.text(policy.minTaskVolume)} or more per task"
      case Kind.FanIn if maxWidth == policy.maxSubpartitionsPerTask =>
        val limit = count(maxWidth.toLong, "shuffle partition")
        s"raised so that no task reads more than $limit${source("maxSubpartitionsPerTask", policy)}"
      case Kind.FanIn =>
        val limit = count(policy.maxBlocksPerRange, "block")
        s"raised so that no task fetches more than $limit${source("maxBlocksPerTask", policy)}"
      case Kind.Memory =>
        val memory = s"each task may fill ${Bytes.text(policy.taskMemory.get)}${source("memory", policy)}"
        s"raised as the rows need ${Bytes.text(heldBytes)} of memory and $memory"
      case Kind.Waves => s"rounded to ${chosen.tasks} for full waves on ${policy.steadySlots.mkString} slots"
      case Kind.Subpartitions if limitedBy.exists(_ >= Severe) =>
        val times = "%.1f".formatLocal(Locale.ROOT, limitedBy.get)
        s"limited by ${count(subpartitions.max(1).toLong, "shuffle partition")}: tasks read $times times the target size"
      case Kind.Subpartitions => s"limited to ${count(subpartitions.max(1).toLong, "shuffle partition")}"
      case Kind.Source        => "the stage has no inputs: sources.defaultParallelism"
    }
    val isByBytes = !chosen.clamps.headOption.exists(Set[Clamp](Kind.Explicit, Kind.Source))
    val start = Option.when(isByBytes)(formula(tasks, inputBytes, broadcastTaken, raw, rounded, policy))
    val divided = halved.map(n => s"divided into $n so that no task is much larger than Spark's")
    val rest = steps ++ divided ++ layout(ranges, subpartitions, policy) ++ noWaves(policy)
    s"${count(tasks.toLong, "task")}: ${(start ++ rest).mkString(", ")}."
  }

  /** Bytes and target size, then their result if it differs from the number of tasks. */
  private def formula(
      tasks: Int,
      inputBytes: Long,
      broadcastTaken: Long,
      raw: Long,
      rounded: Long,
      policy: Policy
  ): String = {
    val rows = if (policy.rowBytes) s" of rows${source("volume.measure", policy)}" else ""
    val target = s"${Bytes.text(policy.dataVolumePerTask)} per task${source("dataVolumePerTask", policy)}"
    val broadcast = if (broadcastTaken > 0) s" less ${Bytes.text(broadcastTaken)} for broadcasts" else ""
    val result =
      if (rounded != raw.max(1)) s" makes ${raw.max(1)}, rounded to $rounded (power of two)"
      else if (raw.max(1) != tasks) s" makes ${raw.max(1)}"
      else ""
    s"${Bytes.text(inputBytes)}$rows at $target$broadcast$result"
  }

  private def layout(ranges: Int, subpartitions: Int, policy: Policy): Option[String] =
    Option.when(policy.balanced && ranges > 0) {
      val averages =
        if (subpartitions > policy.exactSizesUpTo)
          s"; Spark knows only average sizes above ${policy.exactSizesUpTo} shuffle partitions"
        else ""
      s"in ${count(ranges.toLong, "balanced range")}${source("ranges", policy)}$averages"
    }

  private def noWaves(policy: Policy): Option[String] =
    Option.when(policy.balanced && policy.rounding == Rounding.Waves && policy.steadySlots.isEmpty)(
      "not rounded to waves, as the number of slots is unknown or may change"
    )

  private def source(setting: String, policy: Policy): String =
    policy.setBy.get(setting).fold("")(source => s" (${source.text})")

  private def count(n: Long, noun: String): String = if (n == 1) s"1 $noun" else s"$n ${noun}s"
}
