package io.apportion.resources.planned

import io.apportion.history.StageCost

/** Estimates of planned stages, for queries that have not run before. */
private[resources] object StageEstimates {

  /**
   * Slots for the stages that run, and for the stages that can start after these. Executors take time to start, so they
   * are requested before the tasks of the next stages wait.
   */
  def soon(ahead: Seq[PlannedStage]): Int =
    SlotSharing.atOnce(ahead.map(_.need).filter(_.depth <= 1)).min(Int.MaxValue.toLong).toInt

  /** Costs of the stages: their bytes at this speed of a slot. `None` if a size or the speed is unknown. */
  def byBytes(ahead: Seq[PlannedStage], bytesPerSlotSecond: Double): Option[Seq[StageCost]] =
    Option.when(ahead.nonEmpty && bytesPerSlotSecond > 0 && ahead.forall(_.bytes.isDefined)) {
      val numbers = ahead.map(_.number).zipWithIndex.toMap
      ahead.map { stage =>
        val millis = (stage.bytes.getOrElse(0L) * 1000 / bytesPerSlotSecond).toLong
        val tasks = stage.tasks.max(1)
        val longest = (millis * LongestToMean / tasks).min(millis)
        StageCost(tasks, millis, longest, after = stage.reads.flatMap(numbers.get))
      }
    }

  /** Assumed time of the longest task, as a multiple of the mean. */
  private val LongestToMean = 2
}
