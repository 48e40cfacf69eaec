package io.apportion.decision.ranges

/**
 * Tasks run in waves, as many at a time as there are slots, and a wave takes as long as its largest task: 200 equal tasks on 160
 * slots take as long as 320 would. So a number of tasks near the one that the volume asks for may be done sooner.
 */
private[decision] object Waves {

  /** What beginning a wave costs, as the bytes that a task reads in that time: about 40 ms at 100 MB/s. */
  val WaveCost: Long = 4L << 20

  /** What launching a task costs the driver, likewise: about 0.3 ms. */
  val LaunchCost: Long = 32L << 10

  /**
   * The balanced ranges that are priced lowest, and the number of tasks they were made for: `plain` ones, or as many as fill the
   * waves below or above that.
   */
  def cheapest(bytes: Array[Long], plain: Int, slots: Int, bounds: (Int, Int), maxWidth: Int): (Int, Ranges) = {
    val fullWaves = plain / slots
    val others = Seq(fullWaves, fullWaves + 1).map(_.toLong * slots).collect {
      case tasks if tasks >= bounds._1 && tasks <= bounds._2 && tasks != plain => tasks.toInt
    }
    // The plain one comes first, and stays where another costs as much.
    (plain +: others)
      .map(tasks => tasks -> Ranges.balanced(bytes, tasks, maxWidth))
      .minBy { case (_, ranges) => price(ranges.bytesOf(bytes), slots) }
  }

  /** The bytes that could be read, one task after the other, until all tasks have run: tasks start in order, in waves. */
  def price(taskBytes: Array[Long], slots: Int): Double =
    taskBytes.grouped(slots).map(wave => wave.max.toDouble + WaveCost).sum + taskBytes.length.toDouble * LaunchCost
}
