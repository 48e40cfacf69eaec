package io.apportion.decision

import io.apportion.decision.ranges.{Bytes, PartitionTree, PowersOfTwo, RangePacker, Ranges, Waves}
import io.apportion.memory.{HeldRows, MemoryLimit}

/**
 * Decides how many tasks read a stage's inputs, from the bytes that finished stages wrote. It uses the formula of
 * Flink's adaptive batch scheduler: the shuffle bytes divided by the target size per task, which is first reduced by
 * the bytes of broadcast inputs. The result is rounded to the nearest power of two. Even ranges over a power-of-two
 * number of subpartitions then have the same width. The limits of the [[Policy]] apply last.
 */
object Decider {

  /** Maximum ratio of the bytes of the largest task to the largest that Spark would make, unless no task can be smaller. */
  private val LargerThanSparks = 1.1

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

    val unlimited =
      if (inputs.isEmpty) ClampedTasks(policy.sourceParallelism, Seq(Kind.Source))
      else if (policy.parallelism.isDefined) ClampedTasks(policy.parallelism.get, Seq(Kind.Explicit))
      else bounded(rounded, inputBytes, policy).forFanIn(subpartitions, maxWidth, policy).forMemory(shuffles, policy)
    val limited = if (shuffles.isEmpty) unlimited else unlimited.limitedTo(subpartitions.max(1))
    val limitedBy = limitedByPartitions(limited, rounded.min(policy.upperBound.toLong), subpartitions)

    val split = SkewSplits.plan(shuffles, unlimited.tasks, maxWidth, policy)
    val (chosen, whole) =
      if (split.isDefined) (unlimited, split.get._1)
      else if (shuffles.isEmpty) (limited, Ranges.none)
      else if (policy.balanced) balanced(limited, Bytes.sumEach(shuffles.map(_.bytes)), maxWidth, policy)
      else (limited, even(limited, shuffles, policy))
    val halved = Option.when(!policy.balanced && whole.size > limited.tasks)(whole.size)
    val (ranges, splits) = split.orElse(KeySplits.plan(shuffles, whole, policy)).getOrElse((whole, Nil))
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
      largestTaskMemory = largestTaskMemory(shuffles, bytesByInput, splits),
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
        halved,
        MemoryLimit.total(shuffles.map(_.heldBytes)),
        policy
      )
    )
  }

  /**
   * Decides how many tasks read a source. A source can be cut anywhere, so its number of tasks is not rounded.
   *
   * @param bytes bytes that the source reads
   */
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
      reason = Reason.of(chosen, chosen.tasks, bytes, 0, raw, raw, 0, None, Int.MaxValue, 0, None, 0, policy)
    )
  }

  /**
   * Number of tasks for shuffles that have enough subpartitions.
   *
   * @param inputBytes bytes of all these shuffles
   */
  def parallelism(inputBytes: Long, policy: Policy): Int =
    bounded(round(ceilDivide(inputBytes, policy.dataVolumePerTask).max(1), policy), inputBytes, policy).tasks

  /** Bytes of execution memory for the task that needs most. */
  private def largestTaskMemory(shuffles: Seq[Input], bytesByInput: Seq[Array[Long]], splits: Seq[Split]): Long = {
    val held = shuffles.map(_.held)
    if (held.forall(_.isNone)) 0
    else
      splits
        .flatMap(_.tasks)
        .map(parts => HeldRows.needed(held, parts(_).bytes))
        .foldLeft(MemoryLimit.largest(held, bytesByInput))(_ max _)
  }

  private def total(inputs: Seq[Input]): Long =
    inputs.foldLeft(0L)((sum, input) => Bytes.add(sum, Bytes.sum(input.bytes)))

  private def ceilDivide(dividend: Long, divisor: Long): Long =
    if (dividend == 0) 0 else (dividend - 1) / divisor + 1

  private def round(raw: Long, policy: Policy): Long = if (policy.isPowerOfTwo) PowersOfTwo.nearest(raw) else raw

  /** `rounded` within the bounds of the policy, then raised to fill the slots that the policy names. */
  private def bounded(rounded: Long, inputBytes: Long, policy: Policy): ClampedTasks = {
    val clamped = rounded.max(policy.lowerBound.toLong).min(policy.upperBound.toLong).toInt
    val clamp = if (clamped > rounded) Seq(Kind.Minimum) else if (clamped < rounded) Seq(Kind.Maximum) else Nil
    val slotTasks = policy.slots.fold(0L) { slots =>
      val filled = slots.toLong.min(inputBytes / policy.minTaskVolume)
      (if (policy.isPowerOfTwo) PowersOfTwo.down(filled) else filled).min(policy.upperBound.toLong)
    }
    ClampedTasks(clamped, clamp).raisedTo(slotTasks, Kind.Reactive)
  }

  /**
   * Ratio of the tasks that the bytes need to the number of subpartitions. `None` if there are enough subpartitions,
   * or if the number of tasks is set.
   */
  private def limitedByPartitions(chosen: ClampedTasks, needed: Long, subpartitions: Int): Option[Double] =
    Option.when(chosen.clamps.contains(Kind.Subpartitions) && !chosen.isExplicit && needed > subpartitions.max(1)) {
      needed.toDouble / subpartitions.max(1)
    }

  /** Maximum number of subpartitions per range. No range of this width has more blocks than a task may fetch. */
  private def widestRange(shuffles: Seq[Input], policy: Policy): Int =
    widestWithin(blockCounts(shuffles), policy.maxBlocksPerRange).min(policy.maxSubpartitionsPerTask)

  /**
   * Maximum number of blocks of each subpartition. A map task without bytes for a subpartition has no block there
   * (`MapOutputTracker.convertMapStatuses`), so an empty subpartition has none.
   */
  private def blockCounts(shuffles: Seq[Input]): Array[Long] = {
    val counted = shuffles.filter(_.mapTasks > 0)
    val blocks = new Array[Long](counted.map(_.bytes.length).maxOption.getOrElse(0))
    counted.foreach { input =>
      var i = 0
      while (i < input.bytes.length) {
        if (input.fetched.isDefined) blocks(i) += input.fetched.get(i)
        else if (input.bytes(i) > 0) blocks(i) += input.mapTasks
        i += 1
      }
    }
    blocks
  }

  private def widestWithin(blocks: Array[Long], limit: Long): Int = {
    var widest = Int.MaxValue
    var sum = 0L
    var start, end = 0
    while (end < blocks.length) {
      sum += blocks(end)
      while (sum > limit) {
        // The range from start to end, end included, is too wide by one subpartition.
        widest = widest.min(end - start)
        sum -= blocks(start)
        start += 1
      }
      end += 1
    }
    widest.max(1)
  }

  /**
   * Even ranges. After rounding to a power of two, they can have up to 1.5 times the target size. Where Spark would make
   * smaller ranges of the same subpartitions, they are halved.
   */
  private def even(limited: ClampedTasks, shuffles: Seq[Input], policy: Policy): Ranges = {
    val bytes = Bytes.sumEach(shuffles.map(_.bytes))
    val ranges = Ranges.even(bytes.length, limited.tasks)
    if (limited.isExplicit) ranges
    else {
      val readTwice = shuffles.map(input => input.readTwice(ranges) * Bytes.sum(input.bytes)).sum
      val read = 1 + (readTwice / Bytes.sum(bytes).max(1)).min(PartitionTree.MaxReadTwice)
      val halved = ranges.halved(bytes, (largestOfSpark(bytes, policy) * LargerThanSparks / read).toLong)
      if (halved.size <= policy.upperBound) halved else ranges
    }
  }

  /** Bytes of Spark's largest task. Spark fills tasks in order (`ShufflePartitionsUtil.coalescePartitions`). */
  private def largestOfSpark(bytes: Array[Long], policy: Policy): Long = {
    val volume = policy.dataVolumePerTask
    val packer = new RangePacker(bytes)
    val filled = packer.ranges(volume).map { case (from, end) => packer.sum(from, end.max(from + 1)) }
    val largest = filled.foldLeft(0L)(_ max _)
    if (policy.sparksPartitions >= bytes.length) largest
    else {
      // Fewer and larger subpartitions fill tasks less. Their sizes are unknown, so they count as equal.
      val each = ceilDivide(packer.total, policy.sparksPartitions.toLong).max(1)
      largest.min((volume / each).max(1) * each).max(packer.largest)
    }
  }

  /** Balanced ranges and their number of tasks, which is rounded to full waves if the policy says so. */
  private def balanced(
      limited: ClampedTasks,
      bytes: Array[Long],
      maxWidth: Int,
      policy: Policy
  ): (ClampedTasks, Ranges) = {
    val slots = if (policy.rounding == Rounding.Waves && !limited.isExplicit) policy.steadySlots else None
    slots match {
      case None    => (limited, Ranges.balanced(bytes, limited.tasks, maxWidth))
      case Some(n) =>
        val bounds = (policy.lowerBound, policy.upperBound.min(bytes.length.max(1)))
        val (tasks, ranges) = Waves.cheapest(bytes, limited.tasks, n, bounds, maxWidth)
        if (tasks == limited.tasks) (limited, ranges) else (ClampedTasks(tasks, limited.clamps :+ Kind.Waves), ranges)
    }
  }
}

/**
 * Number of tasks, with the limits that changed it.
 *
 * @param clamps these limits, in the order in which they applied
 */
private[decision] final case class ClampedTasks(tasks: Int, clamps: Seq[Clamp]) {

  def isExplicit: Boolean = clamps.contains(Kind.Explicit)

  def raisedTo(minTasks: Long, clamp: Clamp): ClampedTasks =
    if (minTasks > tasks) ClampedTasks(minTasks.toInt, clamps :+ clamp) else this

  def limitedTo(subpartitions: Int): ClampedTasks =
    if (tasks > subpartitions) ClampedTasks(subpartitions, clamps :+ Kind.Subpartitions) else this

  /** Raised so that the rows of each task fit the memory of the policy. */
  def forMemory(shuffles: Seq[Input], policy: Policy): ClampedTasks =
    policy.taskMemory.fold(this) { limit =>
      val needed = MemoryLimit.tasksNeeded(
        shuffles.map(_.heldBytes),
        tasks,
        policy.upperBound,
        limit,
        isBalanced = policy.balanced,
        isPowerOfTwo = policy.isPowerOfTwo,
        isSplit = shuffles.exists(input => input.blocks.isDefined && !input.held.isNone)
      )
      raisedTo(needed.toLong, Kind.Memory)
    }

  /** Raised to enough tasks for ranges of at most `maxWidth` subpartitions, within the bounds of the policy. */
  def forFanIn(subpartitions: Int, maxWidth: Int, policy: Policy): ClampedTasks = {
    val needed = (subpartitions + maxWidth.toLong - 1) / maxWidth
    raisedTo((if (policy.isPowerOfTwo) PowersOfTwo.up(needed) else needed).min(policy.upperBound.toLong), Kind.FanIn)
  }
}
