package io.apportion.outcomes

import io.apportion.decision.Sentence
import io.apportion.decision.ranges.Bytes
import io.apportion.history.StageRun
import io.apportion.report.{DecisionRecord, Outcome}

/**
 * Metrics of a stage that has ended.
 *
 * @param memory execution memory of all tasks together, with what they spilled of it
 * @param millis run time of all tasks together
 */
private[apportion] final case class StageMetrics(outcome: Outcome, memory: Long, millis: Long)

/** What a run shows for the next run of the same stage. */
private[apportion] object MemoryNeed {

  /** Spilled part of the stored bytes that is not worth more tasks. */
  private val Harmless = 0.05

  /** Multiple of the tasks after a run that failed. Its metrics do not show how much memory was missing. */
  private val AfterFailure = 4

  /** Number of failures after which more tasks do not help: something else in the task needs the memory. */
  private val MaxFailures = 2

  /** If more tasks spill more than this part of the last spill, they do not help. */
  private val Helped = 0.5

  /** Minimum mean run time of tasks that shows the speed. In shorter tasks, the start of the task is most of the time. */
  private val MinTaskMillis = 200

  /**
   * What a run shows beside the run before; `None` if it shows nothing new.
   *
   * @param stored  stored bytes of the shuffles
   * @param isTimed whether the run time counts
   */
  def learn(
      before: Option[StageRun],
      stored: Long,
      decision: DecisionRecord,
      metrics: StageMetrics,
      isTimed: Boolean
  ): Option[StageRun] = {
    val outcome = metrics.outcome
    val spilledPart = outcome.spilledBytes.toDouble / stored.max(1)
    val millis = if (isTimed && metrics.millis >= MinTaskMillis * decision.tasks.toLong) metrics.millis else 0L
    val now = StageRun(stored, decision.tasks, spilled = outcome.spilledBytes, millis = millis)
    if (stored == 0) None
    else if (outcome.memoryFailures > 0) {
      val failures = before.fold(1)(_.failures + 1)
      val memory = decision.taskMemory.getOrElse(outcome.peakTaskMemory) * decision.tasks * AfterFailure
      Some(now.copy(memory = memory, failures = failures, helps = failures <= MaxFailures, millis = 0))
    } else if (spilledPart > Harmless) {
      val helps = before.forall(last => last.spilled == 0 || spilledPart < last.spilledPerByte * Helped)
      Some(now.copy(memory = metrics.memory, helps = helps))
    } else {
      // What the run before needed stays known, as this run has enough memory because of it.
      val kept = before.filter(_.needsMemory).map { run =>
        val scaled = (millis * (run.stored.toDouble / stored)).toLong
        run.copy(failures = run.failures.min(1), millis = if (millis > 0) scaled else run.millis)
      }
      kept.orElse(Option.when(millis > 0)(now.copy(spilled = 0))).filterNot(before.contains)
    }
  }

  /** The run as a phrase, if it shows that memory matters. */
  def textOf(run: StageRun): Option[String] = Option.when(run.needsMemory) {
    val tasks = Sentence.count(run.tasks, "task")
    val what = if (run.failures > 0) "ran out of memory" else s"spilled ${Bytes.text(run.spilled)}"
    s"an earlier run with $tasks $what${if (run.helps) "" else ", and more tasks did not help"}"
  }
}
