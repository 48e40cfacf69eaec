package io.apportion.outcomes

import io.apportion.caches.PerApplication
import io.apportion.decision.{Policy, SourceKind, ValueSource}
import io.apportion.decision.ranges.Bytes
import io.apportion.groups.{BroadcastBytes, ExchangeGroup}
import io.apportion.history.{History, PlanFingerprint, StageRun, StageRuns}
import io.apportion.memory.HeldRows
import io.apportion.memory.operators.RowHolders
import io.apportion.report.DecisionRecord
import io.apportion.settings.Settings
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.BroadcastQueryStageExec
import org.apache.spark.sql.internal.SQLConf

/**
 * What an earlier run shows about the tasks that read a group.
 *
 * @param policy the policy for the group, with what the run changes
 * @param run    the run, if one is known
 */
private[apportion] final case class EarlierRun(policy: Policy, run: Option[StageRun]) {

  /** Bytes of execution memory for one stored byte, if the run shows that more tasks may help. */
  def memoryPerByte: Option[Double] =
    run.filter(run => policy.taskMemory.isDefined && run.needsMemory && run.helps).map(_.memoryPerByte)

  /** Memory for each shuffle of the group: what its operators hold, or what the run needed if that is more. */
  def held(group: ExchangeGroup): Seq[HeldRows] =
    if (policy.taskMemory.isEmpty) group.leaves.map(_ => HeldRows.None)
    else {
      val estimated = RowHolders.perStoredByte(group)
      val needed = HeldRows.needed(estimated, group.bytes.map(Bytes.sum))
      memoryPerByte.filter(_ * group.inputBytes > needed).fold(estimated)(ratio => estimated.map(_ => HeldRows(ratio)))
    }
}

/**
 * What the stages of earlier runs needed. It is kept in memory, and in the history if there is one. Memory and time are
 * measured for each byte and not multiplied, so they neither grow with each run nor keep the tasks of a run whose data
 * has shrunk.
 */
private[apportion] final class EarlierRuns private (runs: StageRuns) {
  import EarlierRuns._

  /** What is known about the stage that reads a group, and the policy for its tasks. */
  def forGroup(group: ExchangeGroup, policy: Policy): EarlierRun = {
    val run =
      // A fingerprint costs time, and most applications never spill.
      if (runs.isEmpty || policy.parallelism.isDefined) None else runs.last(nameOf(group))
    val memory =
      for (run <- run; _ <- policy.taskMemory; text <- MemoryNeed.textOf(run))
        yield Memory -> ValueSource(SourceKind.EarlierRun, text)
    EarlierRun(run.fold(policy)(timed(policy, _)).withSources(memory.toSeq: _*), run)
  }

  /** The policy with the bytes that a task reads in the target time, unless the query or a join sets the target size. */
  private def timed(policy: Policy, run: StageRun): Policy = {
    val target = Settings.TargetTaskTime.get(SQLConf.get)
    val isOpen = !policy.setBy.get("dataVolumePerTask").exists(source => OfQuery(source.kind)) && !policy.rowBytes
    run.bytesIn(target).filter(_ => target > 0 && isOpen).fold(policy) { bytes =>
      val speed = Bytes.text(run.bytesIn(1000).get)
      policy.withVolume(
        bytes,
        ValueSource(
          SourceKind.EarlierRun,
          s"targetTaskTime ${target / 1000} s, a task read $speed per second in an earlier run"
        )
      )
    }
  }

  /** The run that shows how much memory a stage needs that only scans files, if more tasks may help. */
  def forScan(stage: SparkPlan): Option[StageRun] =
    if (runs.isEmpty) None else runs.last(nameOf(stage)).filter(run => run.needsMemory && run.helps)

  /** Receiver of what happened to a stage with one decision about shuffles. */
  def receiver(decided: Seq[(ExchangeGroup, DecisionRecord)]): StageMetrics => Unit = decided match {
    case Seq((group, decision)) =>
      val isTimed = Settings.TargetTaskTime.get(SQLConf.get) > 0
      receiver(nameOf(group), group.inputBytes, group.broadcasts, decision, isTimed)
    // The metrics of a stage do not show which group of a union spilled.
    case _ => _ => ()
  }

  /**
   * Receiver of what happened to a stage that only scans files.
   *
   * @param bytes      bytes of the files
   * @param broadcasts tables that its tasks join
   */
  def receiver(
      stage: SparkPlan,
      bytes: Long,
      broadcasts: Seq[BroadcastQueryStageExec],
      decision: DecisionRecord
  ): StageMetrics => Unit = receiver(nameOf(stage), bytes, broadcasts, decision, isTimed = false)

  private def receiver(
      name: => String,
      stored: Long,
      broadcasts: Seq[BroadcastQueryStageExec],
      decision: DecisionRecord,
      isTimed: Boolean
  ): StageMetrics => Unit = {
    // Spark counts the tables of broadcast joins in each task, although all tasks share them (`HashJoin`).
    val shared = BroadcastBytes.inMemory(broadcasts) * decision.tasks
    all => {
      val metrics = all.copy(memory = (all.memory - shared).max(0))
      val showsMemory = metrics.outcome.spilledBytes > 0 || metrics.outcome.memoryFailures > 0
      // A fingerprint costs time, and most stages neither spill nor fail, and do not follow a run that did.
      if (showsMemory || isTimed || decision.sources.contains(Memory)) {
        val entry = name
        MemoryNeed.learn(runs.last(entry), stored, decision, metrics, isTimed).foreach(runs.add(entry, _))
      }
    }
  }
}

private[apportion] object EarlierRuns {
  /** Name of the source that a decision has if an earlier run showed its memory. */
  val Memory = "memory"

  /** Sources of a target size that the target time does not replace. */
  private val OfQuery: Set[SourceKind] = Set(SourceKind.Hint, SourceKind.Write, SourceKind.MultipliedRows)

  private[apportion] val inApplication = new PerApplication(_ => StageRuns.inApplication)

  /** The earlier runs that a session's application knows. */
  def of(session: SparkSession): EarlierRuns =
    new EarlierRuns(new StageRuns(History.of(session), inApplication.of(session.sparkContext)))

  /** Name of the stage that reads a group: what it reads, and the operators in it. */
  private def nameOf(group: ExchangeGroup): String = {
    // Before a shuffle runs, its leaf is an exchange, and later it is a stage.
    val operators = if (group.leaves.exists(_.node eq group.root)) group.above else group.root +: group.above
    PlanFingerprint.combined(
      group.leaves.map(leaf => PlanFingerprint.of(leaf.shuffle).plan) ++
        operators.map(_.nodeName.takeWhile(_.isLetterOrDigit))
    )
  }

  /** Name of a stage that reads no shuffle. */
  private def nameOf(stage: SparkPlan): String = PlanFingerprint.combined(Seq("stage", PlanFingerprint.of(stage).plan))
}
