package io.apportion.decision

import io.apportion.decision.ranges.Bytes

/** A decision in one sentence. */
private[decision] object Reason {

  /** From this many times the target size on, the reason tells how much larger tasks are. */
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
      policy: Policy
  ): String = {
    val steps = chosen.clamps.map {
      case Kind.Explicit => s"parallelism is set to ${policy.parallelism.mkString}${by("parallelism", policy)}"
      case Kind.Minimum  =>
        s"raised to ${policy.lowerBound} by minParallelism ${policy.minParallelism}${by("minParallelism", policy)}"
      case Kind.Maximum =>
        s"lowered to ${policy.upperBound} by maxParallelism ${policy.maxParallelism}${by("maxParallelism", policy)}"
      case Kind.Reactive =>
        s"raised to use ${policy.slots.mkString} slots with ${Bytes.text(policy.minTaskVolume)} or more a task"
      case Kind.FanIn if maxWidth == policy.maxSubpartitionsPerTask =>
        s"raised so that no task reads more than ${count(maxWidth.toLong, "partition")}${by("maxSubpartitionsPerTask", policy)}"
      case Kind.FanIn =>
        s"raised so that no task fetches more than ${count(policy.maxBlocksPerRange, "block")}${by("maxBlocksPerTask", policy)}"
      case Kind.Waves => s"changed to ${chosen.tasks} for the waves on ${policy.steadySlots.mkString} slots"
      case Kind.Subpartitions if limitedBy.exists(_ >= Severe) =>
        val times = "%.1f".formatLocal(java.util.Locale.ROOT, limitedBy.get)
        s"limited by its ${count(subpartitions.max(1).toLong, "partition")}: tasks read $times times the target size"
      case Kind.Subpartitions => s"limited to the ${count(subpartitions.max(1).toLong, "subpartition")} there are"
      case Kind.Source        => "the stage has no inputs, so it gets the default of sources"
    }
    val start =
      if (chosen.clamps.headOption.exists(Set[Clamp](Kind.Explicit, Kind.Source))) None
      else Some(formula(inputBytes, broadcastTaken, raw, rounded, policy))
    val rest = steps ++ layout(ranges, subpartitions, policy) ++ noWaves(policy)
    s"${count(tasks.toLong, "task")}: ${(start ++ rest).mkString(", ")}."
  }

  private def layout(ranges: Int, subpartitions: Int, policy: Policy): Option[String] =
    Option.when(policy.balanced && ranges > 0) {
      val averages =
        if (subpartitions > policy.exactSizesUpTo)
          s"; above ${policy.exactSizesUpTo} subpartitions Spark knows small sizes as averages alone"
        else ""
      s"in ${count(ranges.toLong, "balanced range")}${by("ranges", policy)}$averages"
    }

  private def noWaves(policy: Policy): Option[String] =
    Option.when(policy.balanced && policy.rounding == Rounding.Waves && policy.steadySlots.isEmpty)(
      "not rounded to waves, as the slots are not known or may change"
    )

  private def formula(inputBytes: Long, broadcastTaken: Long, raw: Long, rounded: Long, policy: Policy): String = {
    val volume = s"${Bytes.text(policy.dataVolumePerTask)} a task${by("dataVolumePerTask", policy)}"
    val less = if (broadcastTaken > 0) s" less ${Bytes.text(broadcastTaken)} broadcast to each" else ""
    val rounding = if (rounded != raw.max(1)) s", nearest power of two $rounded" else ""
    val rows = if (policy.rowBytes) s" of rows${by("volume.measure", policy)}" else ""
    s"${Bytes.text(inputBytes)}$rows at $volume$less makes ${raw.max(1)}$rounding"
  }

  private def by(setting: String, policy: Policy): String = policy.setBy.get(setting).fold("")(who => s" ($who)")

  private def count(n: Long, noun: String): String = if (n == 1) s"1 $noun" else s"$n ${noun}s"
}
