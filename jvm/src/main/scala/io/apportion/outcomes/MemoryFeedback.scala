package io.apportion.outcomes

import java.util.LinkedHashMap
import java.util.Map.Entry

import scala.collection.mutable

import io.apportion.decision.{Policy, SourceKind, ValueSource}
import io.apportion.decision.ranges.Bytes
import io.apportion.groups.{BroadcastBytes, ExchangeGroup}
import io.apportion.history.PlanFingerprint
import io.apportion.memory.HeldRows
import io.apportion.memory.operators.RowHolders
import io.apportion.report.{DecisionRecord, Outcome}
import org.apache.spark.SparkContext

/**
 * What a stage really needed, in an earlier run of the application that spilled to disk or ran out of memory.
 *
 * @param ratio    bytes of execution memory for one stored byte
 * @param spilled  bytes that were spilled to disk, for one stored byte
 * @param failures number of runs that ran out of memory, one after the other
 * @param helps    whether more tasks may help
 * @param text     the run as a phrase
 */
private[apportion] final case class Measured(
    ratio: Double,
    spilled: Double = 0,
    failures: Int = 0,
    helps: Boolean = true,
    text: String = ""
) {

  /** The measured memory for each input if it is more than `held`. */
  def orMore(held: Seq[HeldRows], bytes: Seq[Long]): Seq[HeldRows] =
    if (HeldRows.needed(held, bytes) >= ratio * bytes.sum) held else held.map(_ => HeldRows(ratio))
}

private[apportion] object Measured {

  /** Spilled part of the stored bytes that is not worth more tasks. */
  private val Harmless = 0.05

  /** Multiple of the tasks after a run that failed. Its metrics do not show how much memory was missing. */
  private val AfterFailure = 4

  /** Number of failures after which more tasks do not help: something else in the task needs the memory. */
  private val MaxFailures = 2

  /** If more tasks spill more than this part of the last spill, they do not help. */
  private val Helped = 0.5

  /**
   * What a run shows; `None` if it spilled next to nothing.
   *
   * @param before what the run before showed
   * @param stored stored bytes of the shuffles
   * @param needed execution memory of all tasks together, with what they spilled of it
   */
  def of(
      before: Option[Measured],
      stored: Long,
      decision: DecisionRecord,
      outcome: Outcome,
      needed: Long
  ): Option[Measured] = {
    val run = s"an earlier run with ${if (decision.tasks == 1) "1 task" else s"${decision.tasks} tasks"}"
    val spilled = outcome.spilledBytes.toDouble / stored.max(1)
    if (stored == 0) None
    else if (outcome.memoryFailures > 0) {
      val failures = before.fold(1)(_.failures + 1)
      val memory = decision.taskMemory.getOrElse(outcome.peakTaskMemory).toDouble
      val ratio = memory * decision.tasks * AfterFailure / stored
      Some(
        Measured(
          ratio,
          spilled,
          failures,
          failures <= MaxFailures,
          textOf(s"$run ran out of memory", failures <= MaxFailures)
        )
      )
    } else if (spilled <= Harmless) None
    else {
      val helps = before.forall(last => last.spilled == 0 || spilled < last.spilled * Helped)
      val text = textOf(s"$run spilled ${Bytes.text(outcome.spilledBytes)}", helps)
      Some(Measured(needed.toDouble / stored, spilled, helps = helps, text = text))
    }
  }

  private def textOf(run: String, helps: Boolean): String = if (helps) run else s"$run, and more tasks did not help"
}

/**
 * Memory that stages needed in this application. The ratio is measured and not multiplied, so it neither grows with
 * each run nor keeps the tasks of a run whose data has shrunk.
 */
private[apportion] final class MemoryFeedback private {
  import MemoryFeedback._

  private val known = new LinkedHashMap[String, Measured](16, 0.75f, true) {
    override def removeEldestEntry(eldest: Entry[String, Measured]): Boolean = size > MaxKnown
  }

  /** Memory for each shuffle of a group, and its source if an earlier run is known. */
  def heldRows(group: ExchangeGroup, policy: Policy): (Seq[HeldRows], Option[ValueSource]) =
    if (policy.taskMemory.isEmpty) (group.leaves.map(_ => HeldRows.None), None)
    else {
      val estimated = RowHolders.perStoredByte(group)
      val measured = of(group)
      val held = measured.filter(_.helps).fold(estimated)(_.orMore(estimated, group.bytes.map(Bytes.sum)))
      (held, measured.map(run => ValueSource(SourceKind.EarlierRun, run.text)))
    }

  /** What the stage that reads a group needed before. */
  def of(group: ExchangeGroup): Option[Measured] =
    // A fingerprint costs time, and most applications never spill.
    if (synchronized(known.isEmpty)) None else Option(synchronized(known.get(key(group))))

  /** Receiver of the outcome of a stage with one decision, and of the execution memory of all its tasks. */
  def receiver(decided: Seq[(ExchangeGroup, DecisionRecord)]): (Outcome, Long) => Unit = decided match {
    case Seq((group, decision)) =>
      // Spark counts the tables of broadcast joins in each task, although all tasks share them (`HashJoin`).
      val shared = BroadcastBytes.inMemory(group.broadcasts) * decision.tasks
      (outcome, memory) => learn(group, decision, outcome, (memory - shared).max(0))
    // The metrics of a stage do not show which group of a union spilled.
    case _ => (_, _) => ()
  }

  private def learn(group: ExchangeGroup, decision: DecisionRecord, outcome: Outcome, needed: Long): Unit =
    // A fingerprint costs time, and most stages neither spill nor fail.
    if (outcome.spilledBytes > 0 || outcome.memoryFailures > 0) {
      val name = key(group)
      synchronized {
        val run = Measured.of(Option(known.get(name)), group.inputBytes, decision, outcome, needed)
        run.foreach(known.put(name, _))
      }
    }
}

private[apportion] object MemoryFeedback {
  private val MaxKnown = 10000

  private val byContext = mutable.WeakHashMap.empty[SparkContext, MemoryFeedback]

  /** The feedback of an application. */
  def of(sparkContext: SparkContext): MemoryFeedback =
    synchronized(byContext.getOrElseUpdate(sparkContext, new MemoryFeedback))

  /** Identity of the stage that reads a group: what it reads, and the operators in it. */
  private def key(group: ExchangeGroup): String = {
    val operators = (group.root +: group.above).map(_.nodeName.takeWhile(_.isLetterOrDigit))
    (group.leaves.map(leaf => PlanFingerprint.of(leaf.shuffle.child).plan) ++ operators).mkString(" ")
  }
}
