package io.apportion.decision

import io.apportion.decision.ranges.{Bytes, PowersOfTwo, Ranges, Waves}

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
    val rounded = round(raw.max(1), policy)
    val maxWidth = widestRange(shuffles, policy)

    val wanted =
      if (inputs.isEmpty) ClampedTasks(policy.sourceParallelism, Seq(Kind.Source))
      else if (policy.parallelism.isDefined) ClampedTasks(policy.parallelism.get, Seq(Kind.Explicit))
      else bounded(rounded, inputBytes, policy).forFanIn(subpartitions, maxWidth, policy)
    val plain = if (shuffles.isEmpty) wanted else wanted.limitedTo(subpartitions.max(1))
    val limitedBy = limitedByPartitions(plain, rounded.min(policy.upperBound.toLong), subpartitions)

    val split = SkewSplits.plan(shuffles, wanted.tasks, maxWidth, policy)
    val (chosen, ranges) =
      if (split.isDefined) (wanted, split.get._1)
      else if (shuffles.isEmpty) (plain, Ranges.none)
      else if (policy.balanced) inWaves(plain, Bytes.sumEach(shuffles.map(_.bytes)), maxWidth, policy)
      else (plain, Ranges.even(subpartitions, plain.tasks))
    val splits = split.fold(Seq.empty[Split])(_._2)
    val tasks = if (ranges.size + splits.size == 0) chosen.tasks else ranges.size + splits.map(_.tasks.size).sum
    val bytesByInput = shuffles.map(input => ranges.bytesOf(input.bytes))
    Decision(
      parallelism = chosen.tasks,
      tasks = tasks,
      ranges = ranges,
      kind = chosen.clamps.lastOption.getOrElse(Kind.Formula),
      inputBytes = inputBytes,
      broadcastBytes = broadcastBytes,
      dataVolumePerTask = volume,
      broadcastCap = policy.broadcastCap,
      raw = raw,
      rounded = rounded,
      clamps = chosen.clamps,
      subpartitions = subpartitions,
      bytesByInput = bytesByInput,
      splits = splits,
      limitedByPartitions = if (splits.isEmpty) limitedBy else None,
      skewed =
        SkewSplits.unsplit(shuffles, ranges, bytesByInput, SkewSplits.fairShare(inputBytes, chosen.tasks, policy)),
      reason = Reason.of(
        chosen,
        tasks,
        inputBytes,
        broadcastTaken,
        raw,
        rounded,
        subpartitions,
        limitedBy,
        maxWidth,
        ranges.size,
        policy
      )
    )
  }

  /** Decides how many tasks read a source of so many bytes, which can be cut anywhere: nothing is rounded. */
  def decideSource(bytes: Long, policy: Policy): Decision = {
    val raw = ceilDivide(bytes, policy.dataVolumePerTask)
    val chosen = policy.parallelism.fold(bounded(raw.max(1), bytes, policy))(p => ClampedTasks(p, Seq(Kind.Explicit)))
    Decision(
      parallelism = chosen.tasks,
      tasks = chosen.tasks,
      ranges = Ranges.none,
      kind = chosen.clamps.lastOption.getOrElse(Kind.Formula),
      inputBytes = bytes,
      broadcastBytes = 0,
      dataVolumePerTask = policy.dataVolumePerTask,
      broadcastCap = 0,
      raw = raw,
      rounded = raw,
      clamps = chosen.clamps,
      subpartitions = 0,
      bytesByInput = Nil,
      reason = Reason.of(chosen, chosen.tasks, bytes, 0, raw, raw, 0, None, Int.MaxValue, 0, policy)
    )
  }

  /** The parallelism for shuffles of so many bytes, with as many subpartitions as it takes. */
  def parallelism(inputBytes: Long, policy: Policy): Int =
    bounded(round(ceilDivide(inputBytes, policy.dataVolumePerTask).max(1), policy), inputBytes, policy).tasks

  private def total(inputs: Seq[Input]): Long =
    inputs.foldLeft(0L)((sum, input) => Bytes.add(sum, Bytes.sum(input.bytes)))

  private def ceilDivide(dividend: Long, divisor: Long): Long =
    if (dividend == 0) 0 else (dividend - 1) / divisor + 1

  private def round(raw: Long, policy: Policy): Long = if (policy.isPowerOfTwo) PowersOfTwo.nearest(raw) else raw

  /** `rounded` within the policy's bounds, and raised to fill the slots where the policy has some to fill. */
  private def bounded(rounded: Long, inputBytes: Long, policy: Policy): ClampedTasks = {
    val clamped = rounded.max(policy.lowerBound.toLong).min(policy.upperBound.toLong).toInt
    val clamp = if (clamped > rounded) Seq(Kind.Minimum) else if (clamped < rounded) Seq(Kind.Maximum) else Nil
    val greedy = policy.slots.fold(0L) { slots =>
      val filled = slots.toLong.min(inputBytes / policy.minTaskVolume)
      (if (policy.isPowerOfTwo) PowersOfTwo.down(filled) else filled).min(policy.upperBound.toLong)
    }
    ClampedTasks(clamped, clamp).raisedTo(greedy, Kind.Reactive)
  }

  /** Tasks that the bytes need as a multiple of the subpartitions; `None` if they are enough, or if a number of tasks is set. */
  private def limitedByPartitions(chosen: ClampedTasks, asked: Long, subpartitions: Int): Option[Double] =
    Option.when(chosen.clamps.contains(Kind.Subpartitions) && !chosen.isExplicit && asked > subpartitions.max(1)) {
      asked.toDouble / subpartitions.max(1)
    }

  /** The most subpartitions of a range, so that no range of that width has more blocks than a task may fetch. */
  private def widestRange(shuffles: Seq[Input], policy: Policy): Int =
    widest(blocksEach(shuffles), policy.maxBlocksPerRange).min(policy.maxSubpartitionsPerTask)

  /** Upper bound of the blocks of each subpartition: Spark writes none for zero bytes (`MapOutputTracker.convertMapStatuses`). */
  private def blocksEach(shuffles: Seq[Input]): Array[Long] = {
    val counted = shuffles.filter(_.mapTasks > 0)
    val blocks = new Array[Long](counted.map(_.bytes.length).maxOption.getOrElse(0))
    counted.foreach { input =>
      var i = 0
      while (i < input.bytes.length) {
        if (input.bytes(i) > 0) blocks(i) += input.mapTasks
        i += 1
      }
    }
    blocks
  }

  private def widest(blocks: Array[Long], limit: Long): Int = {
    var widest = Int.MaxValue
    var sum = 0L
    var start, end = 0
    while (end < blocks.length) {
      sum += blocks(end)
      while (sum > limit) {
        // The subpartitions from start to end are too many by one.
        widest = widest.min(end - start)
        sum -= blocks(start)
        start += 1
      }
      end += 1
    }
    widest.max(1)
  }

  private def inWaves(
      plain: ClampedTasks,
      bytes: Array[Long],
      maxWidth: Int,
      policy: Policy
  ): (ClampedTasks, Ranges) = {
    val slots = if (policy.rounding == Rounding.Waves && !plain.isExplicit) policy.steadySlots else None
    slots match {
      case None    => (plain, Ranges.balanced(bytes, plain.tasks, maxWidth))
      case Some(n) =>
        val bounds = (policy.lowerBound, policy.upperBound.min(bytes.length.max(1)))
        val (tasks, ranges) = Waves.cheapest(bytes, plain.tasks, n, bounds, maxWidth)
        if (tasks == plain.tasks) (plain, ranges) else (ClampedTasks(tasks, plain.clamps :+ Kind.Waves), ranges)
    }
  }
}

/** A number of tasks, and the limits that made it so, in order. */
private[decision] final case class ClampedTasks(tasks: Int, clamps: Seq[Clamp]) {

  def isExplicit: Boolean = clamps.contains(Kind.Explicit)

  def raisedTo(least: Long, why: Clamp): ClampedTasks =
    if (least > tasks) ClampedTasks(least.toInt, clamps :+ why) else this

  def limitedTo(subpartitions: Int): ClampedTasks =
    if (tasks > subpartitions) ClampedTasks(subpartitions, clamps :+ Kind.Subpartitions) else this

  /** Enough tasks for ranges of that width, within the policy's bounds. */
  def forFanIn(subpartitions: Int, maxWidth: Int, policy: Policy): ClampedTasks = {
    val least = (subpartitions + maxWidth.toLong - 1) / maxWidth
    raisedTo((if (policy.isPowerOfTwo) PowersOfTwo.up(least) else least).min(policy.upperBound.toLong), Kind.FanIn)
  }
}
