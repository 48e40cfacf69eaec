package io.apportion.resources

import java.sql.Timestamp
import java.util.Properties
import java.util.concurrent.{ConcurrentHashMap, Executors, ScheduledExecutorService, TimeUnit}

import scala.collection.concurrent.TrieMap
import scala.collection.mutable
import scala.util.control.NonFatal

import io.apportion.decision.Sentence
import io.apportion.report.{ReportSource, ReportedDecision}
import io.apportion.resources.deadlines.{QueryRun, QueryTimes, SlotsForDeadline, TaskSpeed}
import io.apportion.resources.planned.{PlannedStage, PlannedStages}
import io.apportion.rules.LostQueries
import io.apportion.settings.ResourceSettings.MinSlots
import org.apache.spark.apportion.{Cluster, ExecutorDemand, ExecutorResources, WaitingJob}
import org.apache.spark.{SparkContext, Success}
import org.apache.spark.scheduler._
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.apportion.ShuffleBlocks
import org.apache.spark.sql.execution.{SQLExecution, SparkPlan}
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd
import org.slf4j.LoggerFactory

/**
 * Runs the [[SlotState]] of one application: feeds it with executor changes and the time, makes queries wait, and
 * requests executors. It is created for the first query that needs it; see [[SlotSettings.needsCoordination]]. Other
 * queries are not tracked. Its thread runs only while it tracks a query or requests executors.
 */
private[apportion] final class SlotCoordinator(sparkContext: SparkContext) extends SparkListener {
  import SlotCoordinator._

  private var state =
    SlotState(Cluster.slots(sparkContext), changedAt = now() - ExecutorResources.millisSinceAdded(sparkContext))

  /** The tracked queries. Listeners read this map without the lock. */
  private val settings = TrieMap.empty[Long, SlotSettings]
  private val load = new Load
  private val runs = mutable.Map.empty[Long, QueryRun]
  private val ahead = mutable.Map.empty[Long, Seq[PlannedStage]]
  private val demand = if (Cluster.isDynamic(sparkContext)) Some(new ExecutorDemand) else None
  private val startup = new StartupTime
  private val lost = new LostQueries(delay = TimeUnit.MILLISECONDS.toNanos(LongestDelayMillis))

  /** The run of a query that ends just now. */
  private val ended = mutable.Map.empty[Long, QueryRun]
  private val history = new ResourceHistory
  private var timer = Option.empty[ScheduledExecutorService]

  /**
   * Returns when a stage of a query may start. Throws [[NotEnoughSlots]] after the timeout, and Spark's own error when
   * the query is cancelled.
   */
  def await(query: Long, initial: => SlotSettings, work: => Option[QueryWork] = None): Unit = {
    // Outside of the lock, because this may create the user's rescaling policy and read the history.
    val current = settings.getOrElse(query, initial)
    val known = if (current.followsWork) work else None
    val isFirst = !settings.contains(query)
    val first = known.filter(_ => isFirst).map(work => new QueryRun(work.costs, current.finishWithin, now()))
    known.foreach(work => synchronized(ahead.put(query, work.ahead)))
    val plan = first.flatMap(run => planned(query, current, run))
    val job = synchronized {
      begin(query, current, first, plan)
      if (state.mustWait(query)) Some(new WaitingJob(sparkContext, s"Waits for task slots (${MinSlots.key})"))
      else None
    }
    job.foreach(awaitWith(_, query))
    synchronized {
      if (state.failed(query))
        throw new NotEnoughSlots(current.requested, state.slots, current.timeouts.timeout)
    }
    if (first.isEmpty && known.isDefined) replanSoon(query)
  }

  private def begin(
      query: Long,
      current: SlotSettings,
      run: Option[QueryRun],
      plan: Option[SlotsForDeadline]
  ): Unit = {
    dropLost()
    settings.put(query, current)
    run.foreach(runs.put(query, _))
    for (run <- run; plan <- plan) report(query, run, plan)
    startTimer()
    val target = plan.map(_.slots).orElse(Option.when(current.followsStages)(soon(query)).filter(_ > 0))
    val need = target.fold(current.need)(current.need.aimingAt)
    update(_.begin(query, need, current.timeouts, current.asks, now(), current.finishWithin.isDefined))
    if (run.isEmpty && current.followsStages) update(_.retarget(query, slotsOfStages(query), now()))
  }

  private def awaitWith(job: WaitingJob, query: Long): Unit =
    try
      synchronized {
        while (state.mustWait(query) && !sparkContext.isStopped) {
          val left = state.wakeAt.fold(LongestSleepMillis)(_ - now())
          job.keepRunning(() => synchronized(notifyAll()))
          if (!job.isCancelled) wait(left.max(1).min(LongestSleepMillis))
          job.throwIfCancelled()
          update(_.slotsAre(Cluster.slots(sparkContext), now()))
        }
      }
    catch {
      case failure: Throwable =>
        synchronized(queryEnds(query, succeeded = false))
        throw failure
    } finally job.end()

  /** Sets the target of a query to the slots that its next stage can use. */
  def stageNeeds(query: Long, slots: Int): Unit =
    if (settings.get(query).exists(_.followsStages))
      synchronized(update(_.retarget(query, slots.max(slotsOfStages(query)), now())))

  /** Slots that the query's stages can use now and soon. */
  private def slotsOfStages(query: Long): Int = load.tasksOf(query).max(soon(query))

  /**
   * Slots for the stages that run, and for the stages that can start after these. Executors take time to start, so they
   * are requested before the tasks of the next stages wait.
   */
  private def soon(query: Long): Int =
    PlannedStages.atOnce(ahead.getOrElse(query, Nil).filter(_.depth <= 1)).min(Int.MaxValue.toLong).toInt

  /** The smallest number of slots on which a query ends before its deadline. Not under the lock, as it takes time. */
  private def planned(query: Long, own: SlotSettings, run: QueryRun): Option[SlotsForDeadline] = {
    val plan = synchronized(run.toPlan(now(), PlannedStages.costs(ahead.getOrElse(query, Nil), load.speedOf(query))))
    plan.map(_.slots(own.need.max, synchronized(state.slots), startup.millis))
  }

  /** Sets the target of a query with a deadline anew, in the timer's thread. */
  private def replanSoon(query: Long): Unit =
    if (settings.get(query).exists(_.finishWithin.isDefined))
      synchronized(timer).foreach(_.execute(() => quietly("Planning the slots of a query")(replan(query))))

  private def replan(query: Long): Unit =
    for (own <- settings.get(query); run <- synchronized(runs.get(query)); plan <- planned(query, own, run))
      synchronized {
        if (runs.contains(query)) {
          report(query, run, plan)
          update(_.retarget(query, plan.slots, now()))
        }
      }

  /** Keeps the expected time for the history of slots, and logs once if the deadline cannot be met. */
  private def report(query: Long, run: QueryRun, plan: SlotsForDeadline): Unit = {
    run.expects(plan)
    for (text <- run.firstMiss(plan)) log.warn(s"Query $query $text")
  }

  /** Registered slots, and the slots that the query has lost. `None` for a query that is not tracked. */
  def registeredAndLost(query: Long): Option[(Int, Int)] =
    if (settings.contains(query)) synchronized(Some((state.slots, state.lost(query)))) else None

  def isTracked(query: Long): Boolean = settings.contains(query)

  /** The number of tracked queries. */
  def tracked: Int = settings.size

  def changes: Seq[ResourceChange] = synchronized(history.all)

  override def onExecutorAdded(event: SparkListenerExecutorAdded): Unit = slotsMayHaveChanged()

  override def onExecutorRemoved(event: SparkListenerExecutorRemoved): Unit = slotsMayHaveChanged()

  override def onJobStart(event: SparkListenerJobStart): Unit =
    for (query <- trackedQueryOf(event.properties)) synchronized {
      load.jobStarts(query, event.jobId, now())
      for (run <- runs.get(query))
        run.progress.jobStarts(
          event.stageInfos.flatMap(stage => ShuffleBlocks.writtenBy(stage).map(stage.stageId -> _))
        )
    }

  override def onJobEnd(event: SparkListenerJobEnd): Unit =
    if (load.hasJob(event.jobId)) synchronized(load.jobEnds(event.jobId))

  override def onStageSubmitted(event: SparkListenerStageSubmitted): Unit =
    for (query <- trackedQueryOf(event.properties)) {
      val stage = event.stageInfo
      synchronized {
        load.stageStarts(query, stage.stageId, stage.numTasks)
        runs.get(query).foreach(_.progress.stageStarts(stage.stageId, stage.numTasks, stage.parentIds, now()))
        tellDemand()
      }
      replanSoon(query)
    }

  override def onStageCompleted(event: SparkListenerStageCompleted): Unit = {
    val stage = event.stageInfo.stageId
    for (query <- load.queryOf(stage)) {
      synchronized {
        load.stageEnds(stage)
        runs.get(query).foreach(_.progress.stageEnds(stage, now()))
        tellDemand()
      }
      replanSoon(query)
    }
  }

  override def onTaskEnd(event: SparkListenerTaskEnd): Unit =
    if (event.reason == Success)
      for (query <- load.queryOf(event.stageId)) synchronized {
        load.taskEnds(event.stageId, Option(event.taskMetrics))
        runs.get(query).foreach(_.progress.taskEnds(event.stageId, event.taskInfo.duration))
        tellDemand()
      }

  override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
    case end: SparkListenerSQLExecutionEnd if settings.contains(end.executionId) =>
      synchronized(queryEnds(end.executionId, succeeded = end.errorMessage.forall(_.isEmpty)))
    case _ =>
  }

  private def queryEnds(query: Long, succeeded: Boolean): Unit = {
    settings.remove(query)
    val run = runs.remove(query)
    // What it has cost is known here, and its time is in the last row of its changes.
    if (succeeded) run.foreach(_.end(now()))
    if (load.speed > 0) TaskSpeed.update(sparkContext, load.speed)
    run.foreach(ended.put(query, _))
    load.queryEnds(query)
    ahead.remove(query)
    update(_.end(query, now()))
    ended.remove(query)
  }

  override def onApplicationEnd(event: SparkListenerApplicationEnd): Unit = synchronized {
    timer.foreach(_.shutdownNow())
    running.remove(sparkContext)
    notifyAll()
  }

  private def slotsMayHaveChanged(): Unit =
    if (!sparkContext.isStopped) {
      val slots = Cluster.slots(sparkContext)
      synchronized {
        if (slots > state.slots) startup.added(now())
        update(_.slotsAre(slots, now()))
      }
    }

  private def update(step: SlotState => SlotState): Unit = {
    val before = state
    state = step(before)
    if (state != before) {
      history.add(before, state)(timesOf)
      val declared = state.declared.map(_.slots)
      if (declared.exists(_ > before.declared.fold(0)(_.slots).max(state.slots))) startup.requested(now())
      if (declared != before.declared.map(_.slots)) ask(declared)
      for ((query, own) <- settings if state.failed(query) && !before.failed(query)) cancel(query, own)
      notifyAll()
    }
    tellDemand()
  }

  /** Times of a query that has a deadline. */
  private def timesOf(query: Long): Option[QueryTimes] =
    runs.get(query).orElse(ended.get(query)).flatMap(_.times(now()))

  /**
   * Tells dynamic allocation how many tasks to expect beyond the submitted ones. A query with a deadline needs its
   * target, and the others need at least a slot for each task.
   */
  private def tellDemand(): Unit = for (demand <- demand) {
    val asking = state.queries.filter { case (_, query) => query.asks && query.phase != Phase.Failed }
    val (alone, sharing) = asking.partition(_._2.hasDeadline)
    val open = asking.map { case (id, _) => id -> load.openTasks(id) }
    val ofSharing = sharing.map(_._2.need.target.toLong).maxOption.getOrElse(0L).max(sharing.keys.map(open).sum)
    val expected = alone.map(_._2.need.target.toLong).sum + ofSharing - open.values.sum
    quietly("Telling dynamic allocation the expected tasks") {
      demand.expect(sparkContext, expected.max(Int.MinValue.toLong).min(Int.MaxValue.toLong).toInt)
    }
  }

  /**
   * Requests slots in the timer's thread, because the cluster manager may answer slowly. `None` restores the request
   * that Spark made when the application started.
   */
  private def ask(slots: Option[Int]): Unit = for (timer <- timer if demand.isEmpty) timer.execute { () =>
    val request = slots.fold("the initial number of executors") { n =>
      s"executors with ${Sentence.count(n, "slot")}"
    }
    quietly(s"Requesting $request") {
      val accepted =
        slots.fold(ExecutorResources.requestInitial(sparkContext))(ExecutorResources.request(sparkContext, _))
      if (!accepted) log.warn(s"The cluster manager did not accept the request for $request")
    }
  }

  /** Cancels the jobs of a failed query. Their tasks may otherwise wait forever for executors. */
  private def cancel(query: Long, own: SlotSettings): Unit = {
    val why = NotEnoughSlots.text(own.requested, state.slots, own.timeouts.timeout)
    load.jobsOf(query).foreach(job => sparkContext.cancelJob(job, why))
  }

  private def startTimer(): Unit = if (timer.isEmpty) {
    val started = Executors.newSingleThreadScheduledExecutor { (body: Runnable) =>
      val thread = new Thread(body, "apportion-resources")
      thread.setDaemon(true)
      thread
    }
    timer = Some(started)
    started.scheduleWithFixedDelay(
      () => quietly("Polling the slots")(poll()),
      LongestSleepMillis,
      LongestSleepMillis,
      TimeUnit.MILLISECONDS
    )
  }

  private def poll(): Unit = if (!sparkContext.isStopped) {
    val slots = Cluster.slots(sparkContext)
    val due = synchronized {
      update(_.slotsAre(slots, now()))
      dropLost()
      if (settings.isEmpty && state.declared.isEmpty) stopTimer()
      settings.toSeq.filter(_._2.isDue(now()))
    }
    // Outside of the lock, because a policy of the user may be slow.
    due.foreach { case (query, _) => replan(query) }
    for {
      (query, own) <- due
      policy <- own.rescaling
      queryLoad <- synchronized(state.queries.get(query).map(of => load.of(query, of.need, slots, now())))
    } {
      val target = policy.target(queryLoad)
      synchronized(update(_.retarget(query, target, now())))
    }
  }

  /** Stops the timer's thread, after it has made the requests in its queue. */
  private def stopTimer(): Unit = {
    timer.foreach(_.shutdown())
    timer = None
  }

  /** Drops queries that have ended, because a busy listener bus loses events. */
  private def dropLost(): Unit = lost.among(settings.keys).foreach(queryEnds(_, succeeded = false))

  private def trackedQueryOf(properties: Properties): Option[Long] =
    Option(properties)
      .flatMap(set => Option(set.getProperty(SQLExecution.EXECUTION_ID_KEY)))
      .map(_.toLong)
      .filter(isTracked)

  private def quietly(what: String)(body: => Unit): Unit =
    try body
    catch {
      case failure @ (NonFatal(_) | _: LinkageError) =>
        log.warn(s"$what failed. Apportion tries again after the next change.", failure)
    }
}

private[apportion] object SlotCoordinator extends ReportSource {
  private val log = LoggerFactory.getLogger(getClass.getName.stripSuffix("$"))
  private val LongestSleepMillis = 1000L

  /** Longest time that the end of a query is on its way. Meanwhile, the query keeps its slots. */
  private[resources] val LongestDelayMillis = 10000L
  private val running = new ConcurrentHashMap[SparkContext, SlotCoordinator]

  override def decided(session: SparkSession, stage: SparkPlan, decisions: Seq[ReportedDecision]): Unit =
    for (query <- decisions.head.record.query; coordinator <- existing(session.sparkContext))
      coordinator.stageNeeds(query, decisions.map(_.record.slotsAskedFor).sum)

  override def registeredAndLost(session: SparkSession, query: Long): Option[(Int, Int)] =
    existing(session.sparkContext).flatMap(_.registeredAndLost(query))

  /** The coordinator of an application, if a query has needed one. */
  def existing(sparkContext: SparkContext): Option[SlotCoordinator] = Option(running.get(sparkContext))

  /** The coordinator of an application, created by the first call. `None` if the application has stopped. */
  def of(sparkContext: SparkContext): Option[SlotCoordinator] = {
    // The event of an application's end may come before this call, or may be lost.
    running.keySet().removeIf((other: SparkContext) => other.isStopped)
    if (sparkContext.isStopped) None
    else
      Some(
        running.computeIfAbsent(
          sparkContext,
          { _ =>
            val coordinator = new SlotCoordinator(sparkContext)
            sparkContext.addSparkListener(coordinator)
            coordinator
          }
        )
      )
  }

  /** The last changes of an application's slots. If there are none, one row with the registered slots. */
  def changesOf(sparkContext: SparkContext): Seq[ResourceChange] =
    existing(sparkContext)
      .map(_.changes)
      .filter(_.nonEmpty)
      .getOrElse(
        Seq(
          ResourceChange(
            new Timestamp(System.currentTimeMillis()),
            query = None,
            phase = None,
            need = None,
            slots = Cluster.slots(sparkContext),
            lost = 0,
            declared = None
          )
        )
      )

  /** Milliseconds of a clock that never goes back. */
  private def now(): Long = TimeUnit.NANOSECONDS.toMillis(System.nanoTime())
}
