package io.apportion.decision

/**
 * Decides a parallelism from the bytes that finished stages produced, as Flink's adaptive batch scheduler does:
 * the volume of a task, less what broadcast inputs take up of it, gives a raw number; the nearest power of two to that
 * lets even ranges over a power-of-two number of subpartitions be equally wide.
 */
object Decider {

  def decide(inputs: Seq[Input], policy: Policy): Decision = {
    val (broadcasts, shuffles) = inputs.partition(_.broadcast)
    val inputBytes = total(shuffles)
    val broadcastBytes = total(broadcasts)
    val subpartitions = shuffles.map(_.bytes.length).maxOption.getOrElse(0)
    val volume = policy.dataVolumePerTask
    val broadcastTaken = broadcastBytes.min(policy.broadcastCap).min(volume - 1)
    val raw = ceilDivide(inputBytes, volume - broadcastTaken)
    val rounded = PowersOfTwo.nearest(raw.max(1))

    val limits = if (shuffles.isEmpty) None else Some(subpartitions.max(1))
    val (parallelism, clamps) =
      if (inputs.isEmpty) (policy.sourceParallelism, Seq(Kind.Source))
      else
        applyLimits(policy.parallelism.fold(bounded(rounded, inputBytes, policy))(p => (p, Seq(Kind.Explicit))), limits)

    val ranges =
      if (shuffles.isEmpty) Ranges.none
      else if (policy.balanced) Ranges.balanced(Bytes.sumEach(shuffles.map(_.bytes)), parallelism)
      else Ranges.even(subpartitions, parallelism)
    Decision(
      parallelism = parallelism,
      ranges = ranges,
      kind = clamps.lastOption.getOrElse(Kind.Formula),
      inputBytes = inputBytes,
      broadcastBytes = broadcastBytes,
      dataVolumePerTask = volume,
      broadcastCap = policy.broadcastCap,
      raw = raw,
      rounded = rounded,
      clamps = clamps,
      subpartitions = subpartitions,
      bytesByInput = shuffles.map(input => ranges.bytesOf(input.bytes)),
      reason =
        Reason.of(parallelism, inputBytes, broadcastTaken, raw, rounded, clamps, subpartitions, ranges.size, policy)
    )
  }

  private def total(inputs: Seq[Input]): Long =
    inputs.foldLeft(0L)((sum, input) => Bytes.add(sum, Bytes.sum(input.bytes)))

  private def ceilDivide(dividend: Long, divisor: Long): Long =
    if (dividend == 0) 0 else (dividend - 1) / divisor + 1

  /** `rounded` within the policy's bounds, and raised to fill the slots where the policy has some to fill. */
  private def bounded(rounded: Long, inputBytes: Long, policy: Policy): (Int, Seq[Clamp]) = {
    val clamped = rounded.max(policy.lowerBound.toLong).min(policy.upperBound.toLong).toInt
    val clamp = if (clamped > rounded) Seq(Kind.Minimum) else if (clamped < rounded) Seq(Kind.Maximum) else Nil
    val greedy = policy.slots.fold(0L) { slots =>
      PowersOfTwo.down(slots.toLong.min(inputBytes / policy.minTaskVolume)).min(policy.upperBound.toLong)
    }
    if (greedy > clamped) (greedy.toInt, clamp :+ Kind.Reactive) else (clamped, clamp)
  }

  private def applyLimits(chosen: (Int, Seq[Clamp]), limit: Option[Int]): (Int, Seq[Clamp]) = {
    val (parallelism, clamps) = chosen
    limit.filter(_ < parallelism).fold(chosen)(n => (n, clamps :+ Kind.Subpartitions))
  }
}
