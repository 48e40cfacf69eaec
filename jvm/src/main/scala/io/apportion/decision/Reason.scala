package io.apportion.decision

/** A decision in one sentence. */
private[decision] object Reason {

  def of(
      parallelism: Int,
      inputBytes: Long,
      broadcastTaken: Long,
      raw: Long,
      rounded: Long,
      clamps: Seq[Clamp],
      subpartitions: Int,
      ranges: Int,
      policy: Policy
  ): String = {
    val steps = clamps.map {
      case Kind.Explicit => s"parallelism is set to ${policy.parallelism.mkString}${by("parallelism", policy)}"
      case Kind.Minimum  =>
        s"raised to ${policy.lowerBound} by minParallelism ${policy.minParallelism}${by("minParallelism", policy)}"
      case Kind.Maximum =>
        s"lowered to ${policy.upperBound} by maxParallelism ${policy.maxParallelism}${by("maxParallelism", policy)}"
      case Kind.Reactive =>
        s"raised to use ${policy.slots.mkString} slots with ${Bytes.text(policy.minTaskVolume)} or more a task"
      case Kind.Subpartitions => s"limited to the ${count(subpartitions.max(1), "subpartition")} there are"
      case Kind.Source        => "the stage has no inputs, so it gets the default of sources"
    }
    val start =
      if (clamps.headOption.exists(Set[Clamp](Kind.Explicit, Kind.Source))) None
      else Some(formula(inputBytes, broadcastTaken, raw, rounded, policy))
    s"${count(parallelism, "task")}: ${(start ++ steps ++ layout(ranges, subpartitions, policy)).mkString(", ")}."
  }

  private def layout(ranges: Int, subpartitions: Int, policy: Policy): Option[String] =
    Option.when(policy.balanced && ranges > 0) {
      val averages =
        if (subpartitions > policy.exactSizesUpTo)
          s"; above ${policy.exactSizesUpTo} subpartitions Spark knows small sizes as averages alone"
        else ""
      s"in ${count(ranges, "balanced range")}${by("ranges", policy)}$averages"
    }

  private def formula(inputBytes: Long, broadcastTaken: Long, raw: Long, rounded: Long, policy: Policy): String = {
    val volume = s"${Bytes.text(policy.dataVolumePerTask)} a task${by("dataVolumePerTask", policy)}"
    val less = if (broadcastTaken > 0) s" less ${Bytes.text(broadcastTaken)} broadcast to each" else ""
    val rounding = if (rounded != raw.max(1)) s", nearest power of two $rounded" else ""
    s"${Bytes.text(inputBytes)} at $volume$less makes ${raw.max(1)}$rounding"
  }

  private def by(setting: String, policy: Policy): String = policy.setBy.get(setting).fold("")(who => s" ($who)")

  private def count(n: Int, noun: String): String = if (n == 1) s"1 $noun" else s"$n ${noun}s"
}
