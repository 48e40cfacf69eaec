package io.apportion.resources

import java.sql.Timestamp
import java.util.Properties
import java.util.concurrent.{ConcurrentHashMap, Executors, ScheduledExecutorService, TimeUnit}

import scala.collection.concurrent.TrieMap
import scala.util.control.NonFatal

import io.apportion.settings.Settings.MinSlots
import org.apache.spark.apportion.{Cluster, WaitingJob}
import io.apportion.report.SlotTracker
import org.apache.spark.{SparkContext, Success}
import org.apache.spark.scheduler._
import org.apache.spark.sql.execution.SQLExecution
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
    SlotState(Cluster.slots(sparkContext), changedAt = now() - Cluster.millisSinceAdded(sparkContext))

  /** The tracked queries. Listeners read this map without the lock. */
  private val settings = TrieMap.empty[Long, SlotSettings]
  private val load = new Load
  private val history = new ResourceHistory
  private var timer = Option.empty[ScheduledExecutorService]

  /**
   * Returns when a stage of a query may start. Throws [[NotEnoughSlots]] after the timeout, and Spark's own error when
   * the query is cancelled.
   */
  def await(query: Long, initial: => SlotSettings): Unit = {
    // Outside of the lock, because this may create the user's rescaling policy.
    val current = settings.getOrElse(query, initial)
    val job = synchronized {
      begin(query, current)
      if (state.mustWait(query)) Some(new WaitingJob(sparkContext, s"Waits for task slots (${MinSlots.key})"))
      else None
    }
    job.foreach(awaitWith(_, query))
    synchronized {
      if (state.failed(query))
        throw new NotEnoughSlots(current.requested, state.slots, current.timeouts.timeout)
    }
  }

  private def begin(query: Long, current: SlotSettings): Unit = {
    // Drop queries that have ended, because a busy listener bus loses events.
    settings.keys.toSeq.filterNot(id => id == query || isRunning(id)).foreach(queryEnds)
    settings.put(query, current)
    startTimer()
    update(_.begin(query, current.need, current.timeouts, current.asks, now()))
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
        synchronized(queryEnds(query))
        throw failure
    } finally job.end()

  /** Sets the target of a query to the slots that its next stage can use. */
  def stageNeeds(query: Long, slots: Int): Unit =
    if (settings.get(query).exists(_.followsStages))
      synchronized(update(_.retarget(query, slots.max(load.tasksOf(query)), now())))

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
    for (query <- trackedQueryOf(event.properties)) synchronized(load.jobStarts(query, event.jobId, now()))

  override def onJobEnd(event: SparkListenerJobEnd): Unit =
    if (load.hasJob(event.jobId)) synchronized(load.jobEnds(event.jobId))

  override def onStageSubmitted(event: SparkListenerStageSubmitted): Unit =
    for (query <- trackedQueryOf(event.properties))
      synchronized(load.stageStarts(query, event.stageInfo.stageId, event.stageInfo.numTasks))

  override def onStageCompleted(event: SparkListenerStageCompleted): Unit =
    if (load.hasStage(event.stageInfo.stageId)) synchronized(load.stageEnds(event.stageInfo.stageId))

  override def onTaskEnd(event: SparkListenerTaskEnd): Unit =
    if (event.reason == Success && load.hasStage(event.stageId))
      synchronized(load.taskEnds(event.stageId, Option(event.taskMetrics)))

  override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
    case end: SparkListenerSQLExecutionEnd if settings.contains(end.executionId) =>
      synchronized(queryEnds(end.executionId))
    case _ =>
  }

  private def queryEnds(query: Long): Unit = {
    settings.remove(query)
    load.queryEnds(query)
    update(_.end(query, now()))
  }

  override def onApplicationEnd(event: SparkListenerApplicationEnd): Unit = synchronized {
    timer.foreach(_.shutdownNow())
    running.remove(sparkContext)
    notifyAll()
  }

  private def slotsMayHaveChanged(): Unit =
    if (!sparkContext.isStopped) {
      val slots = Cluster.slots(sparkContext)
      synchronized(update(_.slotsAre(slots, now())))
    }

  private def update(step: SlotState => SlotState): Unit = {
    val before = state
    state = step(before)
    if (state != before) {
      history.add(before, state)
      val declared = state.declared.map(_.slots)
      if (declared != before.declared.map(_.slots)) ask(declared)
      for ((query, own) <- settings if state.failed(query) && !before.failed(query)) cancel(query, own)
      notifyAll()
    }
  }

  /**
   * Requests slots in the timer's thread, because the cluster manager may answer slowly. `None` restores the request
   * that Spark made when the application started.
   */
  private def ask(slots: Option[Int]): Unit = timer.foreach(_.execute { () =>
    val request = slots.fold("the initial number of executors") { n =>
      s"executors with ${if (n == 1) "1 slot" else s"$n slots"}"
    }
    quietly(s"Requesting $request") {
      val accepted = slots.fold(Cluster.requestInitial(sparkContext))(Cluster.request(sparkContext, _))
      if (!accepted) log.warn(s"The cluster manager did not accept the request for $request")
    }
  })

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
      settings.keys.toSeq.filterNot(isRunning).foreach(queryEnds)
      if (settings.isEmpty && state.declared.isEmpty) stopTimer()
      for {
        (query, own) <- settings.toSeq
        policy <- own.rescaling if own.isDue(now())
        querySlots <- state.queries.get(query)
      } yield (query, policy, load.of(query, querySlots.need, slots, now()))
    }
    // Outside of the lock, because a policy of the user may be slow.
    for ((query, policy, queryLoad) <- due) {
      val target = policy.target(queryLoad)
      synchronized(update(_.retarget(query, target, now())))
    }
  }

  /** Stops the timer's thread, after it has made the requests in its queue. */
  private def stopTimer(): Unit = {
    timer.foreach(_.shutdown())
    timer = None
  }

  private def isRunning(query: Long): Boolean = SQLExecution.getQueryExecution(query) != null

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

private[apportion] object SlotCoordinator extends SlotTracker {
  private val log = LoggerFactory.getLogger(getClass.getName.stripSuffix("$"))
  private val LongestSleepMillis = 1000L
  private val running = new ConcurrentHashMap[SparkContext, SlotCoordinator]

  override def stageNeeds(sparkContext: SparkContext, query: Long, slots: Int): Unit =
    existing(sparkContext).foreach(_.stageNeeds(query, slots))

  override def registeredAndLost(sparkContext: SparkContext, query: Long): Option[(Int, Int)] =
    existing(sparkContext).flatMap(_.registeredAndLost(query))

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
