package io.apportion.outcomes

import io.apportion.decision.{Policy, SourceKind, ValueSource}
import io.apportion.decision.ranges.Bytes
import io.apportion.groups.{Advisor, ExchangeGroup, GroupPolicy, InputBytes}
import io.apportion.history.{History, PlanFingerprint, StageRun, StageRuns}
import io.apportion.report.DecisionRecord
import io.apportion.util.PerApplication
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.BroadcastQueryStageExec
import org.apache.spark.sql.internal.SQLConf

/**
 * What the stages of earlier runs needed. It is kept in memory, and in the history if there is one. Memory and time are
 * measured for each byte and not multiplied, so they neither grow with each run nor keep the tasks of a run whose data
 * has shrunk.
 */
private[apportion] final class EarlierRuns private (runs: StageRuns) {
  import EarlierRuns._

  /** Adds what an earlier run of the stage shows that reads a group. */
  private def advise(group: ExchangeGroup, known: GroupPolicy): GroupPolicy =
    // A fingerprint costs time, and most applications never spill.
    if (runs.isEmpty || known.policy.parallelism.isDefined) known
    else
      runs.last(nameOf(group)).fold(known) { run =>
        val policy = timed(known.policy, run)
        val memory = policy.taskMemory.flatMap(_ => MemoryNeed.textOf(run)).map(ValueSource(SourceKind.EarlierRun, _))
        GroupPolicy(
          policy.withSources(memory.map(Memory -> _).toSeq: _*),
          policy.taskMemory.filter(_ => run.needsMemory && run.helps).map(_ => run.memoryPerByte)
        )
      }

  /** The policy with the bytes that a task reads in the target time, unless the query or a join sets the target size. */
  private def timed(policy: Policy, run: StageRun): Policy = {
    val target = OutcomeSettings.TargetTaskTime.get(SQLConf.get)
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
      val isTimed = OutcomeSettings.TargetTaskTime.get(SQLConf.get) > 0
      receiver(nameOf(group), group.inputBytes, group.broadcasts, decision, isTimed)
    // The metrics of a stage do not show which group of a union spilled.
    case _ => _ => ()
  }

  /**
   * Receiver of what happened to a stage with this name.
   *
   * @param stored     bytes of the shuffles or files that it reads
   * @param broadcasts tables that its tasks join
   * @param isTimed    whether its run time counts
   */
  def receiver(
      name: => String,
      stored: Long,
      broadcasts: Seq[BroadcastQueryStageExec],
      decision: DecisionRecord,
      isTimed: Boolean = false
  ): StageMetrics => Unit = {
    // Spark counts the tables of broadcast joins in each task, although all tasks share them (`HashJoin`).
    val shared = InputBytes.inMemory(broadcasts) * decision.tasks
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

private[apportion] object EarlierRuns extends Advisor {

  /** Name of the source that a decision has if an earlier run showed its memory. */
  val Memory = "memory"

  /** Sources of a target size that the target time does not replace. */
  private val OfQuery: Set[SourceKind] = Set(SourceKind.Hint, SourceKind.Write, SourceKind.MultipliedRows)

  private[apportion] val inApplication = new PerApplication(_ => StageRuns.inApplication)

  override def advise(group: ExchangeGroup, known: GroupPolicy, session: SparkSession): GroupPolicy =
    of(session).advise(group, known)

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
  def nameOf(stage: SparkPlan): String = PlanFingerprint.combined(Seq("stage", PlanFingerprint.of(stage).plan))
}
