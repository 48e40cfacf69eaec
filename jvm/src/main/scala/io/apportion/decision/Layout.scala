package io.apportion.decision

import io.apportion.decision.ranges.{Bytes, PartitionTree, RangePacker, Ranges, Waves}

/**
 * Which subpartitions each task reads.
 *
 * @param number number of tasks before ranges are halved and subpartitions are split
 * @param ranges consecutive subpartitions that a task reads
 * @param splits subpartitions that several tasks read in parts
 * @param halves number of ranges after some were halved; `None` if none was
 */
private[decision] final case class Layout(
    number: ClampedTasks,
    ranges: Ranges,
    splits: Seq[Split] = Nil,
    halves: Option[Int] = None
) {

  /** Number of tasks that run. */
  def tasks: Int = if (ranges.size + splits.size == 0) number.tasks else ranges.size + splits.map(_.tasks.size).sum
}

private[decision] object Layout {

  /** Maximum ratio of the bytes of the largest task to the largest that Spark would make, unless no task can be smaller. */
  private val LargerThanSparks = 1.1

  /**
   * Layout of the tasks that read shuffles.
   *
   * @param sums   bytes of each subpartition of all shuffles
   * @param wanted number of tasks, which may be higher than the number of subpartitions
   * @param widest maximum number of subpartitions per range
   */
  def of(shuffles: Seq[Input], sums: Array[Long], wanted: ClampedTasks, widest: Int, policy: Policy): Layout =
    if (shuffles.isEmpty) Layout(wanted, Ranges.none)
    else
      SkewSplits.plan(shuffles, sums, wanted.tasks, widest, policy) match {
        case Some((ranges, splits)) => Layout(wanted, ranges, splits)
        case None                   =>
          val number = wanted.limitedTo(sums.length.max(1))
          val whole =
            if (policy.balanced) balanced(sums, number, widest, policy) else even(shuffles, sums, number, policy)
          KeySplits.plan(shuffles, sums, whole.ranges, policy).fold(whole) { case (ranges, splits) =>
            whole.copy(ranges = ranges, splits = splits)
          }
      }

  /**
   * Even ranges. After rounding to a power of two, they can have up to 1.5 times the target size, and most of a few keys can
   * be in one range. Where Spark would make smaller ranges of the same subpartitions, they are halved.
   */
  private def even(shuffles: Seq[Input], bytes: Array[Long], number: ClampedTasks, policy: Policy): Layout = {
    val ranges = Ranges.even(bytes.length, number.tasks)
    if (number.isExplicit) Layout(number, ranges)
    else {
      def readTwice(some: Ranges): Double =
        shuffles.map(input => input.readTwice(some) * Bytes.sum(input.bytes)).sum / Bytes.sum(bytes).max(1)
      val read = 1 + readTwice(ranges).min(PartitionTree.MaxReadTwice)
      def halved(some: Ranges, volume: Long): Ranges = {
        val halves = some.halved(bytes, (largestOfSpark(bytes, volume, policy) * LargerThanSparks / read).toLong)
        if (halves.size > some.size && halves.size <= policy.upperBound) halves else some
      }
      val chosen = fillingSlots(halved(ranges, policy.dataVolumePerTask), bytes, policy)(halved, readTwice)
      if (chosen eq ranges) Layout(number, ranges) else Layout(number, chosen, halves = Some(chosen.size))
    }
  }

  /**
   * Halves of ranges if the stage then ends sooner. Spark makes tasks smaller than the target size to fill the slots
   * (`spark.sql.adaptive.coalescePartitions.parallelismFirst`).
   */
  private def fillingSlots(ranges: Ranges, bytes: Array[Long], policy: Policy)(
      halved: (Ranges, Long) => Ranges,
      readTwice: Ranges => Double
  ): Ranges = policy.slots.fold(ranges) { slots =>
    val volume = (Bytes.sum(bytes) / slots).max(policy.minTaskVolume)
    val halves = if (volume < policy.dataVolumePerTask) halved(ranges, volume) else ranges
    def end(some: Ranges): Double = Waves.end(some.bytesOf(bytes), slots) * (1 + readTwice(some))
    if ((halves ne ranges) && end(halves) * LargerThanSparks < end(ranges)) halves else ranges
  }

  /** Bytes of Spark's largest task. Spark fills tasks in order (`ShufflePartitionsUtil.coalescePartitions`). */
  private def largestOfSpark(bytes: Array[Long], volume: Long, policy: Policy): Long = {
    val packer = new RangePacker(bytes)
    val filled = packer.ranges(volume).map { case (from, end) => packer.sum(from, end.max(from + 1)) }
    val largest = filled.foldLeft(0L)(_ max _)
    if (policy.sparksPartitions >= bytes.length) largest
    else {
      // Fewer and larger subpartitions fill tasks less. Their sizes are unknown, so they count as equal.
      val each = Decider.ceilDivide(packer.total, policy.sparksPartitions.toLong).max(1)
      largest.min((volume / each).max(1) * each).max(packer.largest)
    }
  }

  /** Balanced ranges and their number of tasks, which is rounded to full waves if the policy says so. */
  private def balanced(bytes: Array[Long], number: ClampedTasks, widest: Int, policy: Policy): Layout = {
    val slots = if (policy.rounding == Rounding.Waves && !number.isExplicit) policy.steadySlots else None
    slots match {
      case None    => Layout(number, Ranges.balanced(bytes, number.tasks, widest))
      case Some(n) =>
        val bounds = (policy.lowerBound, policy.upperBound.min(bytes.length.max(1)))
        val (tasks, ranges) = Waves.cheapest(bytes, number.tasks, n, bounds, widest)
        Layout(if (tasks == number.tasks) number else ClampedTasks(tasks, number.clamps :+ Kind.Waves), ranges)
    }
  }
}
