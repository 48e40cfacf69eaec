package io.apportion.resources.deadlines

import java.util.PriorityQueue

import scala.collection.mutable

import io.apportion.history.StageCost

/**
 * Task slots that a schedule can use.
 *
 * @param slots   number of slots
 * @param present slots that exist at the start; the others come after `startup`
 * @param startup milliseconds from the request for an executor until it runs tasks
 */
private[apportion] final case class SlotSupply(slots: Int, present: Int = Int.MaxValue, startup: Long = 0) {
  require(
    slots >= 1 && present >= 0 && startup >= 0,
    s"slots is $slots, present is $present and startup is $startup ms; allowed are 1 slot or more, and times from 0"
  )
}

/** Start and end of a stage, in milliseconds from the start of the schedule. */
private[apportion] final case class StageTimes(start: Long, end: Long)

/**
 * Schedules stages on task slots in the order of Spark's FIFO scheduler: a free slot takes the next task of the stage
 * that has been ready longest. The tasks of a stage take equally long, apart from the longest, which starts last.
 */
private[apportion] object ListSchedule {

  /** The times of each stage. The run time is O(tasks x log(slots)). */
  def of(stages: Seq[StageCost], supply: SlotSupply): Seq[StageTimes] = {
    val all = stages.toIndexedSeq
    val times = new Array[StageTimes](all.size)
    val inputsLeft = all.map(_.after.distinct.size).toArray
    val readers = Array.fill(all.size)(mutable.ArrayBuffer.empty[Int])
    for ((stage, place) <- all.zipWithIndex; before <- stage.after.distinct) {
      require(before >= 0 && before < place, s"stage $place waits for stage $before; it can only wait for earlier ones")
      readers(before) += place
    }
    val ready = mutable.PriorityQueue.empty[(Long, Int)].reverse
    def enqueue(place: Int): Unit = {
      val ends = all(place).after.map(times(_).end)
      ready.enqueue(((if (ends.isEmpty) 0L else ends.max) + all(place).delay, place))
    }
    all.indices.filter(inputsLeft(_) == 0).foreach(enqueue)
    val slots = freeSlots(all, supply)
    while (ready.nonEmpty) {
      val (at, place) = ready.dequeue()
      times(place) = run(all(place), at, slots)
      for (reader <- readers(place)) {
        inputsLeft(reader) -= 1
        if (inputsLeft(reader) == 0) enqueue(reader)
      }
    }
    times.toSeq
  }

  /** The end of the last stage; 0 without stages. */
  def end(stages: Seq[StageCost], supply: SlotSupply): Long = of(stages, supply).map(_.end).maxOption.getOrElse(0L)

  /** The most tasks that run at the same time if there is a slot for each. More slots are of no use. */
  def mostAtOnce(stages: Seq[StageCost]): Int = {
    val times = of(stages, SlotSupply(stages.map(_.tasks.toLong).sum.max(1).min(Int.MaxValue.toLong).toInt))
    val atStarts = times.map { moment =>
      stages
        .zip(times)
        .collect {
          case (stage, StageTimes(start, end)) if start <= moment.start && moment.start < end =>
            stage.tasks.toLong
        }
        .sum
    }
    atStarts.maxOption.getOrElse(0L).max(1).min(Int.MaxValue.toLong).toInt
  }

  /** The times at which the slots become free. More slots than tasks are left out. */
  private def freeSlots(stages: Seq[StageCost], supply: SlotSupply): PriorityQueue[java.lang.Long] = {
    val useful = stages.map(_.tasks.toLong).sum.max(1).min(supply.slots.toLong).toInt
    val free = new PriorityQueue[java.lang.Long](useful)
    for (slot <- 0 until useful) free.add(if (slot < supply.present) 0L else supply.startup)
    free
  }

  /** Puts the tasks of a stage on the slots. */
  private def run(stage: StageCost, at: Long, slots: PriorityQueue[java.lang.Long]): StageTimes = {
    val others = stage.tasks - 1
    val usual = if (others == 0) 0.0 else (stage.millis - stage.longest).max(0).toDouble / others
    var (first, last) = (Long.MaxValue, at)
    for (task <- 1 to stage.tasks) {
      val begin = slots.poll().longValue.max(at)
      // Differences of rounded multiples, so that no time is lost by rounding.
      val millis = if (task > others) stage.longest else math.round(usual * task) - math.round(usual * (task - 1))
      first = first.min(begin)
      last = last.max(begin + millis)
      slots.add(begin + millis)
    }
    StageTimes(first, last)
  }
}
