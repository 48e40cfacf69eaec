package io.apportion.resources

import java.util.Properties
import java.util.concurrent.{Executors, ScheduledExecutorService, TimeUnit}

import scala.collection.concurrent.TrieMap
import scala.util.control.NonFatal

import io.apportion.decision.{ResourceRequirement, Sentence}
import io.apportion.report.{ReportSource, ReportedDecision}
import io.apportion.resources.deadlines.{QueryCosts, QueryRun, SlotSupply, SlotsForDeadline, TaskSpeed}
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

  /** The tracked queries. Listeners read this map and the next one without the lock. */
  private val queries = TrieMap.empty[Long, Tracked]

  /** The running stages of these queries. */
  private val stages = TrieMap.empty[Int, Tracked]
  private val demand = if (Cluster.isDynamic(sparkContext)) Some(new ExecutorDemand) else None
  private val startup = new StartupTime
  private val lost = new LostQueries(delay = TimeUnit.MILLISECONDS.toNanos(LongestDelayMillis))
  private val history = new ResourceHistory
  private var timer = Option.empty[ScheduledExecutorService]

  /**
   * Returns when a stage of a query may start. Throws [[NotEnoughSlots]] after the timeout, and Spark's own error when
   * the query is cancelled.
   *
   * @param work what the query cost in earlier runs, and its stages that have not finished
   */
  def await(
      query: Long,
      initial: => SlotSettings,
      work: => Option[(QueryCosts, Seq[PlannedStage])] = None
  ): Unit = {
    // Outside of the lock, because this may create the user's rescaling policy and read the history.
    val earlier = queries.get(query)
    val settings = earlier.fold(initial)(_.settings)
    val known = if (settings.followsWork) work else None
    val own = earlier.getOrElse(new Tracked(query, settings, known.map(_._1)))
    for ((_, ahead) <- known) synchronized { own.ahead = ahead }
    val plan = if (earlier.isEmpty) planned(own) else None
    val job = synchronized {
      begin(own, plan)
      if (state.mustWait(query)) Some(new WaitingJob(sparkContext, s"Waits for task slots (${MinSlots.key})"))
      else None
    }
    job.foreach(awaitWith(_, query))
    synchronized {
      if (state.failed(query))
        throw new NotEnoughSlots(settings.requested, state.slots, settings.timeouts.timeout)
    }
    if (earlier.isDefined && known.isDefined) replanSoon(own)
  }

  private def begin(begun: Tracked, plan: Option[SlotsForDeadline]): Unit = {
    dropLost()
    // Another subquery may have begun the query in the meantime.
    val own = queries.getOrElseUpdate(begun.query, begun)
    import own.{query, settings}
    plan.foreach(report(own, _))
    startTimer()
    val target = plan.map(_.slots).orElse(Option.when(settings.followsStages)(soon(own)).filter(_ > 0))
    val need = target.fold(settings.need)(settings.need.aimingAt)
    update(_.begin(query, need, settings.timeouts, settings.asks, now(), settings.finishWithin.isDefined))
    if (settings.followsStages) update(_.retarget(query, slotsOfStages(own), now()))
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
    for (own <- queries.get(query) if own.settings.followsStages)
      synchronized(update(_.retarget(query, slots.max(slotsOfStages(own)), now())))

  /** Slots that the query's stages can use now and soon. */
  private def slotsOfStages(own: Tracked): Int = own.run.progress.largestStage.max(soon(own))

  /**
   * Slots for the stages that run, and for the stages that can start after these. Executors take time to start, so they
   * are requested before the tasks of the next stages wait.
   */
  private def soon(own: Tracked): Int =
    PlannedStages.atOnce(own.ahead.filter(_.depth <= 1)).min(Int.MaxValue.toLong).toInt

  /** The smallest number of slots on which a query ends before its deadline. Not under the lock, as it takes time. */
  private def planned(own: Tracked): Option[SlotsForDeadline] = {
    def speed = Seq(own.run.progress.taskSpeed, speedOfAll).map(_.bytesPerSecond).find(_ > 0).getOrElse(0.0)
    val plan = synchronized(own.run.toPlan(now(), PlannedStages.costs(own.ahead, speed)))
    plan.map(_.slots(SlotSupply(own.settings.need.max, present = synchronized(state.slots), startup.millis)))
  }

  private def speedOfAll: TaskSpeed = TaskSpeed.inApplication.of(sparkContext)

  /** Sets the target of a query with a deadline anew, in the timer's thread. */
  private def replanSoon(own: Tracked): Unit =
    if (own.settings.finishWithin.isDefined)
      synchronized(timer).foreach(_.execute(() => quietly("Planning the slots of a query")(replan(own))))

  private def replan(own: Tracked): Unit =
    for (plan <- planned(own)) synchronized {
      if (isTracked(own.query)) {
        report(own, plan)
        update(_.retarget(own.query, plan.slots, now()))
      }
    }

  /** Keeps the expected time for the history of slots, and logs once if the deadline cannot be met. */
  private def report(own: Tracked, plan: SlotsForDeadline): Unit =
    for (text <- own.run.expects(plan)) log.warn(s"Query ${own.query} $text")

  /** Registered slots, and the slots that the query has lost. `None` for a query that is not tracked. */
  def registeredAndLost(query: Long): Option[(Int, Int)] =
    if (isTracked(query)) synchronized(Some((state.slots, state.lost(query)))) else None

  def isTracked(query: Long): Boolean = queries.contains(query)

  /** The number of tracked queries. */
  def tracked: Int = queries.size

  def changes: Seq[ResourceChange] = synchronized(history.all)

  override def onExecutorAdded(event: SparkListenerExecutorAdded): Unit = slotsMayHaveChanged()

  override def onExecutorRemoved(event: SparkListenerExecutorRemoved): Unit = slotsMayHaveChanged()

  override def onJobStart(event: SparkListenerJobStart): Unit =
    for (own <- trackedOf(event.properties)) synchronized {
      val written = event.stageInfos.flatMap(stage => ShuffleBlocks.writtenBy(stage).map(stage.stageId -> _))
      own.run.progress.jobStarts(event.jobId, written, now())
    }

  override def onJobEnd(event: SparkListenerJobEnd): Unit =
    for (own <- queries.values) synchronized(own.run.progress.jobEnds(event.jobId))

  override def onStageSubmitted(event: SparkListenerStageSubmitted): Unit =
    for (own <- trackedOf(event.properties)) {
      val stage = event.stageInfo
      synchronized {
        stages.put(stage.stageId, own)
        own.run.progress.stageStarts(stage.stageId, stage.numTasks, stage.parentIds, now())
        tellDemand()
      }
      replanSoon(own)
    }

  override def onStageCompleted(event: SparkListenerStageCompleted): Unit =
    for (own <- stages.remove(event.stageInfo.stageId)) {
      synchronized {
        own.run.progress.stageEnds(event.stageInfo.stageId, now())
        tellDemand()
      }
      replanSoon(own)
    }

  override def onTaskEnd(event: SparkListenerTaskEnd): Unit =
    if (event.reason == Success)
      for (own <- stages.get(event.stageId)) synchronized {
        own.run.progress.taskEnds(event.stageId, event.taskInfo.duration)
        for (metrics <- Option(event.taskMetrics)) {
          val bytes = metrics.inputMetrics.bytesRead + metrics.shuffleReadMetrics.totalBytesRead
          for (speed <- Seq(own.run.progress.taskSpeed, speedOfAll)) speed.add(bytes, metrics.executorRunTime)
        }
        tellDemand()
      }

  override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
    case end: SparkListenerSQLExecutionEnd if isTracked(end.executionId) =>
      synchronized(queryEnds(end.executionId, succeeded = end.errorMessage.forall(_.isEmpty)))
    case _ =>
  }

  private def queryEnds(query: Long, succeeded: Boolean): Unit = {
    // What it has cost is known here, and its time is in the last row of its changes.
    if (succeeded) queries.get(query).foreach(_.run.end(now()))
    update(_.end(query, now()))
    queries.remove(query)
    stages.filterInPlace((_, own) => own.query != query)
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
      history.add(before, state)(query => queries.get(query).flatMap(_.run.times(now())))
      val declared = state.declared.map(_.slots)
      if (declared.exists(_ > before.declared.fold(0)(_.slots).max(state.slots))) startup.requested(now())
      if (declared != before.declared.map(_.slots)) ask(declared)
      for ((query, own) <- queries if state.failed(query) && !before.failed(query)) cancel(own)
      notifyAll()
    }
    tellDemand()
  }

  /**
   * Tells dynamic allocation how many tasks to expect beyond the submitted ones. A query with a deadline needs its
   * target, and the others need at least a slot for each task.
   */
  private def tellDemand(): Unit = for (demand <- demand) {
    val asking = state.queries.filter { case (_, query) => query.asks && query.phase != Phase.Failed }
    val (alone, sharing) = asking.partition(_._2.hasDeadline)
    val open = asking.map { case (id, _) => id -> queries.get(id).fold(0L)(_.run.progress.openTasks) }
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
  private def cancel(own: Tracked): Unit = {
    val why = NotEnoughSlots.text(own.settings.requested, state.slots, own.settings.timeouts.timeout)
    own.run.progress.jobs.foreach(job => sparkContext.cancelJob(job, why))
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
      if (queries.isEmpty && state.declared.isEmpty) stopTimer()
      queries.values.filter(_.settings.isDue(now())).toSeq
    }
    // Outside of the lock, because a policy of the user may be slow.
    due.foreach(replan)
    for {
      own <- due
      policy <- own.settings.rescaling
      load <- synchronized(state.queries.get(own.query).map(query => own.load(query.need, slots)))
    } {
      val target = policy.target(load)
      synchronized(update(_.retarget(own.query, target, now())))
    }
  }

  /** Stops the timer's thread, after it has made the requests in its queue. */
  private def stopTimer(): Unit = {
    timer.foreach(_.shutdown())
    timer = None
  }

  /** Drops queries that have ended, because a busy listener bus loses events. */
  private def dropLost(): Unit = lost.among(queries.keys).foreach(queryEnds(_, succeeded = false))

  private def trackedOf(properties: Properties): Option[Tracked] =
    Option(properties)
      .flatMap(set => Option(set.getProperty(SQLExecution.EXECUTION_ID_KEY)))
      .map(_.toLong)
      .flatMap(queries.get)

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
  private val running = TrieMap.empty[SparkContext, SlotCoordinator]

  /** A tracked query. The coordinator's lock guards it. */
  private final class Tracked(val query: Long, val settings: SlotSettings, costs: Option[QueryCosts]) {
    val run = new QueryRun(costs, settings.finishWithin, now())

    /** Its stages that have not finished, in an order in which each follows the stages that it reads. */
    var ahead = Seq.empty[PlannedStage]

    /** The load of the query. Assumes that unfinished tasks read as many bytes as finished tasks on average. */
    def load(need: ResourceRequirement, slots: Int): QueryLoad = {
      val progress = run.progress
      val waiting = (progress.openTasks * progress.taskSpeed.meanBytes).toLong
      QueryLoad(need, slots, waiting, progress.taskSpeed.bytesPerSecond, progress.runningMillis(now()))
    }
  }

  override def decided(session: SparkSession, stage: SparkPlan, decisions: Seq[ReportedDecision]): Unit =
    for (query <- decisions.head.record.query; coordinator <- existing(session.sparkContext))
      coordinator.stageNeeds(query, decisions.map(_.record.slotsAskedFor).sum)

  override def registeredAndLost(session: SparkSession, query: Long): Option[(Int, Int)] =
    existing(session.sparkContext).flatMap(_.registeredAndLost(query))

  /** The coordinator of an application, if a query has needed one. */
  def existing(sparkContext: SparkContext): Option[SlotCoordinator] = running.get(sparkContext)

  /** The coordinator of an application, created by the first call. `None` if the application has stopped. */
  def of(sparkContext: SparkContext): Option[SlotCoordinator] = running.synchronized {
    // The event of an application's end may come before this call, or may be lost.
    running.filterInPlace((other, _) => !other.isStopped)
    existing(sparkContext).orElse(Option.when(!sparkContext.isStopped) {
      val coordinator = new SlotCoordinator(sparkContext)
      running.put(sparkContext, coordinator)
      sparkContext.addSparkListener(coordinator)
      coordinator
    })
  }

  /** The last changes of an application's slots. If there are none, one row with the registered slots. */
  def changesOf(sparkContext: SparkContext): Seq[ResourceChange] =
    existing(sparkContext)
      .map(_.changes)
      .filter(_.nonEmpty)
      .getOrElse(Seq(ResourceChange(slots = Cluster.slots(sparkContext))))

  /** Milliseconds of a clock that never goes back. */
  private def now(): Long = TimeUnit.NANOSECONDS.toMillis(System.nanoTime())
}
