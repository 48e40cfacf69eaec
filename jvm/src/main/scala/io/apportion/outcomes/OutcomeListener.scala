package io.apportion.outcomes

import java.lang.ref.WeakReference

import scala.collection.mutable

import io.apportion.report.{DecisionLog, DecisionRecord, Outcome, ReportSource, ReportedDecision}
import io.apportion.rules.LostQueries
import io.apportion.settings.Settings
import io.apportion.util.PerApplication
import org.apache.spark.apportion.{DecisionMetrics, ListenerBus}
import org.apache.spark.scheduler._
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.apportion.ShuffleBlocks
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.{ExceptionFailure, ExecutorLostFailure, SparkContext, Success, TaskEndReason, TaskKilled}

/**
 * Finds the stage that runs the tasks of each decision, and adds what happened to the decision. The shuffles that a
 * stage reads identify it, or the metric of its scan.
 */
private[apportion] final class OutcomeListener private[outcomes] (
    sparkContext: WeakReference[SparkContext],
    lost: LostQueries = new LostQueries
) extends SparkListener {
  import OutcomeListener._

  /** Stages that have not ended, by query. They refer to plans, so the end of the query removes them. */
  private val waiting = mutable.Map.empty[Long, List[Watched]]
  private val running = mutable.Map.empty[(Int, Int), Tasks]

  /** Shuffle that each stage of a running job writes. Jobs have stages that they skip, too. */
  private val written = mutable.Map.empty[Int, Int]
  private val jobs = mutable.LinkedHashMap.empty[Int, Seq[Int]]

  private[outcomes] def watch(watched: Watched): Unit = synchronized {
    waiting --= lost.among(waiting.keys)
    waiting.update(watched.query, waiting.getOrElse(watched.query, Nil) :+ watched)
  }

  private[outcomes] def waitingQueries: Set[Long] = synchronized(waiting.keySet.toSet)

  override def onJobStart(event: SparkListenerJobStart): Unit = synchronized {
    // The end of a job may be lost, as any event.
    jobs.keys.take(jobs.size - MaxJobs + 1).toSeq.foreach(forgetJob)
    jobs.update(event.jobId, event.stageIds)
    for (stage <- event.stageInfos; shuffle <- ShuffleBlocks.writtenBy(stage)) written.update(stage.stageId, shuffle)
  }

  override def onJobEnd(event: SparkListenerJobEnd): Unit = synchronized(forgetJob(event.jobId))

  private def forgetJob(job: Int): Unit = {
    val stages = jobs.remove(job).getOrElse(Nil)
    written --= stages
    running.filterInPlace { case ((stage, _), _) => !stages.contains(stage) }
  }

  override def onStageSubmitted(event: SparkListenerStageSubmitted): Unit =
    synchronized(running.update(attemptOf(event.stageInfo), new Tasks))

  override def onTaskEnd(event: SparkListenerTaskEnd): Unit = synchronized {
    for (tasks <- running.get((event.stageId, event.stageAttemptId)))
      tasks.add(event.reason, Option(event.taskMetrics).map(m => (m.executorRunTime, m.peakExecutionMemory)))
  }

  override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
    case end: SparkListenerSQLExecutionEnd => synchronized(waiting.remove(end.executionId))
    case _                                 =>
  }

  override def onStageCompleted(event: SparkListenerStageCompleted): Unit = {
    val stage = event.stageInfo
    val (found, tasks) = synchronized((take(stage), running.remove(attemptOf(stage)).getOrElse(new Tasks)))
    val metrics = stage.taskMetrics
    for (watched <- found if metrics != null) {
      val outcome = Outcome(
        stage = stage.stageId,
        spilledBytes = metrics.diskBytesSpilled,
        peakTaskMemory = tasks.peak,
        gcMillis = metrics.jvmGCTime,
        fetchWaitMillis = metrics.shuffleReadMetrics.fetchWaitTime,
        medianTaskMillis = tasks.median,
        longestTaskMillis = tasks.longest,
        failedTasks = tasks.failed,
        memoryFailures = tasks.outOfMemory
      )
      for (context <- Option(sparkContext.get); counters <- DecisionMetrics.ofActive(context))
        counters.ended(outcome.spilledBytes, outcome.memoryFailures)
      for (group <- watched.decided.map(_.group)) {
        Option(watched.log.get).foreach(_.complete(watched.query, group, outcome))
        if (watched.postsEvents)
          Option(sparkContext.get).foreach(ListenerBus.post(_, OutcomeEvent.of(watched.query, group, outcome)))
      }
      val memory = metrics.peakExecutionMemory + metrics.memoryBytesSpilled
      watched.ended(StageMetrics(outcome, memory, metrics.executorRunTime))
    }
  }

  /**
   * Removes and returns what is known of a stage. Several stages read a reused shuffle, so the first one with the number
   * of tasks counts.
   */
  private def take(stage: StageInfo): Seq[Watched] = {
    val shuffles = stage.parentIds.flatMap(written.get).toSet
    val all = waiting.valuesIterator.flatten.toSeq
    val readers = all.filter(_.decided.exists(_.shuffles.exists(shuffles)))
    val found = all.filter(_.scan.exists(stage.accumulables.contains)) ++
      readers.find(_.decided.map(_.tasks).sum == stage.numTasks).orElse(readers.headOption)
    for (watched <- found) waiting.update(watched.query, waiting(watched.query).filterNot(_ eq watched))
    found
  }

  private def attemptOf(stage: StageInfo): (Int, Int) = (stage.stageId, stage.attemptNumber())
}

private[apportion] object OutcomeListener extends ReportSource {

  /** The listener of an application. The first use adds it. */
  private val listeners = new PerApplication(sparkContext => {
    val listener = new OutcomeListener(new WeakReference(sparkContext))
    sparkContext.addSparkListener(listener)
    listener
  })

  /**
   * A stage whose outcome is not known yet.
   *
   * @param decided     its decisions, as they are in the log
   * @param scan        id of a metric of the scan that the decision is about, which only tasks of the stage change
   * @param log         log that has its decisions, which may be garbage with its session
   * @param postsEvents whether to post an [[OutcomeEvent]] for each decision
   * @param ended       receives the outcome and the metrics of the stage
   */
  private[outcomes] final class Watched(
      val query: Long,
      val decided: Seq[DecisionRecord],
      val scan: Option[Long],
      val log: WeakReference[DecisionLog],
      val postsEvents: Boolean,
      val ended: StageMetrics => Unit
  )

  /** Adds the outcome to the records of a stage that reads shuffles when its tasks have ended. */
  override def decided(session: SparkSession, stage: SparkPlan, decisions: Seq[ReportedDecision]): Unit = {
    val ofGroups = decisions.flatMap(decision => decision.group.map(_ -> decision.record))
    if (ofGroups.nonEmpty) watch(session, ofGroups.map(_._2), None, EarlierRuns.of(session).receiver(ofGroups))
  }

  /**
   * Adds the outcome to the records of a stage when its tasks have ended.
   *
   * @param scan  id of a metric of the scan that the decision is about, if it is about a scan
   * @param ended receives the outcome and the metrics of the stage
   */
  def watch(
      session: SparkSession,
      decided: Seq[DecisionRecord],
      scan: Option[Long],
      ended: StageMetrics => Unit
  ): Unit =
    for (query <- decided.head.query) {
      val log = new WeakReference(DecisionLog.ofQuery(Some(query), session))
      val watched = new Watched(query, decided, scan, log, Settings.EventsEnabled.get(SQLConf.get), ended)
      listeners.of(session.sparkContext).watch(watched)
    }

  /** The queries that the listener of an application knows. */
  private[outcomes] def waitingQueries(sparkContext: SparkContext): Set[Long] =
    listeners.of(sparkContext).waitingQueries

  /** Tasks of a stage attempt so far. */
  private final class Tasks {
    private val millis = mutable.ArrayBuilder.make[Long]
    private var kept = 0
    var longest, peak = 0L
    var failed, outOfMemory = 0

    def add(reason: TaskEndReason, metrics: Option[(Long, Long)]): Unit = {
      for ((runTime, memory) <- metrics) {
        if (kept < MaxTimes) millis += runTime
        kept += 1
        longest = longest.max(runTime)
        peak = peak.max(memory)
      }
      // Spark kills attempts that it no longer needs, such as the slower one of two.
      if (reason != Success && !reason.isInstanceOf[TaskKilled]) failed += 1
      if (isOutOfMemory(reason)) outOfMemory += 1
    }

    // A builder gives its result once, but several decisions may be about the tasks of a stage.
    lazy val median: Long = {
      val sorted = millis.result().sorted
      if (sorted.isEmpty) 0 else sorted((sorted.length - 1) / 2)
    }
  }

  /** Maximum number of jobs that run at the same time. */
  private val MaxJobs = 1000

  /** Maximum number of run times per stage for the median. */
  private val MaxTimes = 10000

  private def isOutOfMemory(reason: TaskEndReason): Boolean = reason match {
    case failure: ExceptionFailure       => failure.className.endsWith("OutOfMemoryError")
    case ExecutorLostFailure(_, _, text) => text.exists(why => MemoryExits.exists(why.contains))
    case _                               => false
  }

  /** Exit codes of executors that ran out of memory: killed by the system, and `SparkExitCode.OOM`. */
  private val MemoryExits = Seq("code 137", "code 52", "status 137", "status 52", "OutOfMemory", "OOMKilled")
}
