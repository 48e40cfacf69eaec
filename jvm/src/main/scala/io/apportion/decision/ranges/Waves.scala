package io.apportion.decision.ranges

import scala.collection.mutable

/**
 * Rounds numbers of tasks to full waves. Tasks run in waves of as many tasks as there are slots, and a wave takes as
 * long as its largest task: 200 equal tasks on 160 slots take as long as 320. So a number of tasks near the formula's
 * number may finish sooner.
 */
private[decision] object Waves {

  /** Cost to start a wave, in bytes that a task reads in that time: about 40 ms at 100 MB/s. */
  val WaveCost: Long = 4L << 20

  /** Cost for the driver to launch a task, in bytes that a task reads in that time: about 0.3 ms at 100 MB/s. */
  val LaunchCost: Long = 32L << 10

  /**
   * Number of tasks with the lowest [[price]], and its balanced ranges. The candidates are `unrounded`, and the
   * numbers that fill the waves just below and just above it.
   *
   * @param bytes    bytes of each subpartition
   * @param bounds   smallest and largest number of tasks allowed
   * @param maxWidth maximum number of subpartitions per range
   */
  def cheapest(bytes: Array[Long], unrounded: Int, slots: Int, bounds: (Int, Int), maxWidth: Int): (Int, Ranges) = {
    val fullWaves = unrounded / slots
    val rounded = Seq(fullWaves, fullWaves + 1).map(_.toLong * slots).collect {
      case tasks if tasks >= bounds._1 && tasks <= bounds._2 && tasks != unrounded => tasks.toInt
    }
    // The unrounded number comes first, so it wins a tie.
    (unrounded +: rounded)
      .map(tasks => tasks -> Ranges.balanced(bytes, tasks, maxWidth))
      .minBy { case (_, ranges) => price(ranges.bytesOf(bytes), slots) }
  }

  /**
   * Time until all tasks have run, in bytes that one task reads in that time. Tasks start in order, in waves.
   *
   * @param taskBytes bytes that each task reads
   */
  def price(taskBytes: Array[Long], slots: Int): Double =
    taskBytes.grouped(slots).map(wave => wave.max.toDouble + WaveCost).sum + taskBytes.length.toDouble * LaunchCost

  /** Bytes that a slot reads until all tasks have ended, if each task starts in the slot that is free first. */
  def end(taskBytes: Array[Long], slots: Int): Long = {
    val busy = mutable.PriorityQueue.empty[Long](Ordering[Long].reverse)
    busy ++= Seq.fill(slots.min(taskBytes.length))(0L)
    taskBytes.foreach(bytes => busy.enqueue(Bytes.add(busy.dequeue(), bytes)))
    busy.foldLeft(0L)(_ max _)
  }
}
