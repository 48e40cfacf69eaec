package io.apportion.scans

import io.apportion.decision.{Policy, SourceKind, ValueSource}
import io.apportion.groups.InputBytes
import io.apportion.outcomes.{EarlierRuns, MemoryNeed, StageMetrics}
import io.apportion.report.DecisionRecord
import io.apportion.settings.SessionPolicy
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.BroadcastQueryStageExec
import org.apache.spark.sql.execution.exchange.ShuffleExchangeLike

/**
 * A stage that reads one scan and writes a shuffle, and what earlier runs of it needed. Its partial aggregate, for
 * example, spills if it has too many groups. The files do not show that before.
 */
private[apportion] final class ScanStage private (plan: SparkPlan, session: SparkSession) {
  private lazy val runs = EarlierRuns.of(session)
  private lazy val earlier = runs.forScan(plan)

  /**
   * The policy with a minimum number of tasks, so that each has enough memory for what an earlier run needed.
   *
   * @param bytes bytes of the files
   */
  def withMemory(policy: Policy, bytes: Long, settings: SessionPolicy): Policy = {
    val needed = for {
      run <- earlier if policy.parallelism.isEmpty
      memory <- settings.taskMemory(InputBytes.inMemory(ScanStage.broadcasts(plan)))
      text <- MemoryNeed.textOf(run)
      tasks = math.ceil(run.memoryPerByte * bytes / memory).min(policy.maxParallelism.toDouble).toInt
      if tasks > policy.minParallelism
    } yield (tasks, ValueSource(SourceKind.EarlierRun, text))
    needed.fold(policy) { case (tasks, source) =>
      policy.copy(minParallelism = tasks).withSources("minParallelism" -> source, EarlierRuns.Memory -> source)
    }
  }

  /** Receiver of what happened to the stage with a decision about its scan, whose files have this number of bytes. */
  def receiver(bytes: Long, decision: DecisionRecord): StageMetrics => Unit =
    runs.receiver(EarlierRuns.nameOf(plan), bytes, ScanStage.broadcasts(plan), decision)
}

private[apportion] object ScanStage {

  /**
   * The stage of a plan; `None` if the metrics of the stage do not show what the tasks of one scan needed, or if its
   * tasks may write files. More tasks would write more files.
   */
  def of(plan: SparkPlan, session: SparkSession): Option[ScanStage] = {
    val inputs = plan.collectLeaves().filterNot(_.isInstanceOf[BroadcastQueryStageExec])
    inputs match {
      case Seq(FileScan(_)) if plan.isInstanceOf[ShuffleExchangeLike] => Some(new ScanStage(plan, session))
      case _                                                          => None
    }
  }

  private def broadcasts(plan: SparkPlan): Seq[BroadcastQueryStageExec] =
    plan.collect { case broadcast: BroadcastQueryStageExec => broadcast }
}
