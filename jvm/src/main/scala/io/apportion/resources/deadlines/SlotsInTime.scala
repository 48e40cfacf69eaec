package io.apportion.resources.deadlines

import io.apportion.history.StageCost

/**
 * A number of task slots and the time that stages take on them.
 *
 * @param slots  number of slots
 * @param millis time until the last stage ends
 * @param inTime whether that is before the deadline
 */
private[apportion] final case class SlotsForDeadline(slots: Int, millis: Long, inTime: Boolean)

/** Finds the smallest number of task slots on which stages end in time. */
private[apportion] object SlotsInTime {

  /**
   * The shortest possible time may be exceeded by this factor, because its last percents need most slots. It is not more
   * than the margin of [[DeadlinePlan]].
   */
  private val Tolerance = 1.1

  /**
   * The smallest number of slots on which the stages end within `left` milliseconds. If no number is enough: the
   * smallest number on which they end nearly as early as possible.
   *
   * @param supply all slots that the stages may use
   */
  def of(stages: Seq[StageCost], left: Long, supply: SlotSupply): SlotsForDeadline = {
    val useful = ListSchedule.mostAtOnce(stages).min(supply.slots)
    def end(slots: Int) = ListSchedule.end(stages, supply.copy(slots = slots))
    val soonest = end(useful)
    val within = left.max((soonest * Tolerance).toLong)
    // On fewer slots, the tasks alone take longer.
    val least = stages.map(_.millis).sum / within.max(1)
    val (slots, millis) = candidates(useful).iterator
      .filter(_ >= least)
      .map(n => (n, if (n == useful) soonest else end(n)))
      .find(_._2 <= within)
      .getOrElse((useful, soonest))
    SlotsForDeadline(slots, millis, inTime = millis <= left)
  }

  /** Numbers up to `most`: each one up to 32, then 16 for each doubling, because a schedule takes time. */
  private[deadlines] def candidates(most: Int): Seq[Int] = {
    val steps = Iterator.iterate(1L)(n => n + (n / 16).max(1)).takeWhile(_ < most).map(_.toInt)
    steps.toSeq :+ most
  }
}
