package io.apportion.decision

import io.apportion.decision.memory.{HeldRows, MemoryLimit}
import io.apportion.decision.ranges.{Bytes, PowersOfTwo}

/**
 * Decides how many tasks read a stage's inputs, from the bytes that finished stages wrote. It uses the formula of
 * Flink's adaptive batch scheduler: the shuffle bytes divided by the target size per task, which is first reduced by
 * the bytes of broadcast inputs. The result is rounded to the nearest power of two. Even ranges over a power-of-two
 * number of subpartitions then have the same width. The limits of the [[Policy]] apply last.
 */
object Decider {

  def decide(inputs: Seq[Input], policy: Policy): Decision = {
    val (broadcasts, shuffles) = inputs.partition(_.broadcast)
    val (inputBytes, broadcastBytes) = (total(shuffles), total(broadcasts))
    val raw = ceilDivide(inputBytes, policy.volumeBeside(broadcastBytes))
    val rounded = round(raw.max(1), policy)
    val widest = FanIn.widestRange(shuffles, policy)

    val wanted =
      if (inputs.isEmpty) ClampedTasks(policy.sourceParallelism, Seq(Kind.Source))
      else if (policy.parallelism.isDefined) ClampedTasks(policy.parallelism.get, Seq(Kind.Explicit))
      else
        bounded(rounded, inputBytes, policy)
          .forFanIn(subpartitionsOf(shuffles), widest, policy)
          .forMemory(shuffles, policy)
    val sums = Bytes.sumEach(shuffles.map(_.bytes))
    val layout = Layout.of(shuffles, sums, wanted, widest, policy)
    val bytesByInput = shuffles.map(input => layout.ranges.bytesOf(input.bytes))
    val decision = Decision(
      parallelism = layout.number.tasks,
      tasks = layout.tasks,
      ranges = layout.ranges,
      inputBytes = inputBytes,
      broadcastBytes = broadcastBytes,
      raw = raw,
      rounded = rounded,
      clamps = layout.number.clamps,
      subpartitions = subpartitionsOf(shuffles),
      bytesByInput = bytesByInput,
      splits = layout.splits,
      halves = layout.halves,
      limitedByPartitions = limitedByPartitions(layout, rounded.min(policy.upperBound.toLong), shuffles),
      skewed = SkewSplits
        .unsplit(sums, layout.ranges, bytesByInput, SkewSplits.fairShare(inputBytes, layout.number.tasks, policy)),
      widestRange = widest,
      heldMemory = MemoryLimit.total(shuffles.map(_.heldBytes)),
      largestTaskMemory = largestTaskMemory(shuffles, bytesByInput, layout.splits)
    )
    decision.copy(sentence = Reason.of(decision, policy))
  }

  /**
   * Decides how many tasks read a source. A source can be cut anywhere, so its number of tasks is not rounded.
   *
   * @param bytes bytes that the source reads
   */
  def decideSource(bytes: Long, policy: Policy): Decision = {
    val raw = ceilDivide(bytes, policy.dataVolumePerTask)
    val number = policy.parallelism.fold(bounded(raw.max(1), bytes, policy))(p => ClampedTasks(p, Seq(Kind.Explicit)))
    val decision = Decision(
      parallelism = number.tasks,
      tasks = number.tasks,
      inputBytes = bytes,
      raw = raw,
      rounded = raw,
      clamps = number.clamps
    )
    decision.copy(sentence = Reason.of(decision, policy))
  }

  /**
   * Number of tasks for shuffles that have enough subpartitions.
   *
   * @param inputBytes bytes of all these shuffles
   */
  def parallelism(inputBytes: Long, policy: Policy): Int =
    bounded(round(ceilDivide(inputBytes, policy.dataVolumePerTask).max(1), policy), inputBytes, policy).tasks

  private[decision] def subpartitionsOf(shuffles: Seq[Input]): Int = shuffles.map(_.bytes.length).maxOption.getOrElse(0)

  private[decision] def ceilDivide(dividend: Long, divisor: Long): Long =
    if (dividend == 0) 0 else (dividend - 1) / divisor + 1

  private def total(inputs: Seq[Input]): Long =
    inputs.foldLeft(0L)((sum, input) => Bytes.add(sum, Bytes.sum(input.bytes)))

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
   * Ratio of the tasks that the bytes need to the number of subpartitions. `None` if there are enough subpartitions, if
   * the number of tasks is set, or if subpartitions are split.
   */
  private def limitedByPartitions(layout: Layout, needed: Long, shuffles: Seq[Input]): Option[Double] = {
    val subpartitions = subpartitionsOf(shuffles).max(1)
    val isLimited = layout.number.clamps.contains(Kind.Subpartitions) && !layout.number.isExplicit
    Option.when(isLimited && layout.splits.isEmpty && needed > subpartitions)(needed.toDouble / subpartitions)
  }

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
