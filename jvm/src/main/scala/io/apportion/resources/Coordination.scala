package io.apportion.resources

import java.util.Properties
import java.util.concurrent.{ConcurrentHashMap, Executors, ScheduledExecutorService, TimeUnit}

import scala.collection.mutable
import scala.util.control.NonFatal

import org.apache.spark.{SparkContext, Success}
import org.apache.spark.apportion.Cluster
import org.apache.spark.scheduler._
import org.apache.spark.sql.execution.SQLExecution
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd
import org.slf4j.LoggerFactory

/**
 * The coordinator of one application at work: it is told what happens to executors and what time it is, queries wait for it, and
 * the cluster is asked for what it says. Where nobody waits or asks it has no thread, and it ends with the application.
 */
private[apportion] final class Coordination(sparkContext: SparkContext) extends SparkListener {
  import Coordination._

  private var coordinator =
    Coordinator(Cluster.slots(sparkContext), changedAt = now() - Cluster.millisSinceAdded(sparkContext))
  private val terms = mutable.Map.empty[Long, Terms]
  private val load = new Load
  private val history = new ResourceHistory
  private var timer = Option.empty[ScheduledExecutorService]

  /** Returns when a stage of a query may start; throws [[NotEnoughSlots]] if it has waited in vain. */
  def await(query: Long, asked: => Terms): Unit = synchronized {
    val its = terms.getOrElseUpdate(query, asked)
    if (its.needsTimer) startTimer()
    update(_.begin(query, its.need, its.patience, its.asks, now()))
    while (coordinator.mustWait(query) && !sparkContext.isStopped) {
      val left = coordinator.wakeAt.fold(LongestSleepMillis)(_ - now())
      wait(left.max(1).min(LongestSleepMillis))
      update(_.slotsAre(Cluster.slots(sparkContext), now()))
    }
    if (coordinator.failed(query)) throw new NotEnoughSlots(its.need.min, coordinator.slots, its.patience.timeout)
  }

  /** A stage that a query runs next has so many tasks. */
  def stageHas(query: Long, tasks: Int): Unit = synchronized {
    if (terms.get(query).exists(_.followsStages))
      update(_.retarget(query, tasks.max(load.tasksOf(query)), now()))
  }

  /** Slots that are there, and how many fewer these are than the query had. */
  def standing(query: Option[Long]): (Int, Int) =
    synchronized((coordinator.slots, query.fold(0)(coordinator.lost)))

  def changes: Seq[ResourceChange] = synchronized(history.all)

  override def onExecutorAdded(event: SparkListenerExecutorAdded): Unit = slotsMayHaveChanged()

  override def onExecutorRemoved(event: SparkListenerExecutorRemoved): Unit = slotsMayHaveChanged()

  override def onJobStart(event: SparkListenerJobStart): Unit = synchronized {
    queryOf(event.properties).foreach(load.jobStarts(_, event.jobId, now()))
  }

  override def onJobEnd(event: SparkListenerJobEnd): Unit = synchronized(load.jobEnds(event.jobId))

  override def onStageSubmitted(event: SparkListenerStageSubmitted): Unit = synchronized {
    queryOf(event.properties).foreach(load.stageStarts(_, event.stageInfo.stageId, event.stageInfo.numTasks))
  }

  override def onStageCompleted(event: SparkListenerStageCompleted): Unit = synchronized {
    load.stageEnds(event.stageInfo.stageId)
  }

  override def onTaskEnd(event: SparkListenerTaskEnd): Unit =
    if (event.reason == Success) synchronized(load.taskEnds(event.stageId, Option(event.taskMetrics)))

  override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
    case end: SparkListenerSQLExecutionEnd => synchronized(queryEnds(end.executionId))
    case _                                 =>
  }

  private def queryEnds(query: Long): Unit = {
    terms.remove(query)
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

  private def update(step: Coordinator => Coordinator): Unit = {
    val before = coordinator
    coordinator = step(before)
    if (coordinator != before) {
      history.add(before, coordinator)
      if (coordinator.declared != before.declared) coordinator.declared.foreach(last => ask(last.slots))
      for ((query, its) <- terms if coordinator.failed(query) && !before.failed(query)) cancel(query, its)
      notifyAll()
    }
  }

  /** In the timer's thread, as the cluster may take its time to answer. */
  private def ask(slots: Int): Unit = timer.foreach(_.execute { () =>
    quietly(s"asking for $slots slots") {
      if (!Cluster.request(sparkContext, slots))
        log.warn(s"The cluster manager did not take the request for executors with $slots slots in all")
    }
  })

  /** Tasks that run may wait forever for executors. */
  private def cancel(query: Long, its: Terms): Unit = {
    val why = NotEnoughSlots.text(its.need.min, coordinator.slots, its.patience.timeout)
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
      () => quietly("looking after slots")(poll()),
      LongestSleepMillis,
      LongestSleepMillis,
      TimeUnit.MILLISECONDS
    )
  }

  private def poll(): Unit = if (!sparkContext.isStopped) {
    val slots = Cluster.slots(sparkContext)
    val due = synchronized {
      update(_.slotsAre(slots, now()))
      // A busy listener bus loses events.
      terms.keys.toSeq.filter(SQLExecution.getQueryExecution(_) == null).foreach(queryEnds)
      for {
        (query, its) <- terms.toSeq
        policy <- its.rescaling if its.isDue(now())
        standing <- coordinator.queries.get(query)
      } yield (query, policy, load.of(query, standing.need, slots, now()))
    }
    // A policy is the user's own, and may take its time.
    for ((query, policy, its) <- due) {
      val target = policy.target(its)
      synchronized(update(_.retarget(query, target, now())))
    }
  }

  private def queryOf(properties: Properties): Option[Long] =
    Option(properties).flatMap(its => Option(its.getProperty(SQLExecution.EXECUTION_ID_KEY))).map(_.toLong)

  private def quietly(what: String)(body: => Unit): Unit =
    try body
    catch {
      case failure @ (NonFatal(_) | _: LinkageError) =>
        log.warn(s"$what failed; it is tried again with the next change", failure)
    }
}

private[apportion] object Coordination {
  private val log = LoggerFactory.getLogger(getClass.getName.stripSuffix("$"))
  private val LongestSleepMillis = 1000L
  private val running = new ConcurrentHashMap[SparkContext, Coordination]

  /** Of an application that runs: it begins with the first call. */
  def of(sparkContext: SparkContext): Coordination = running.computeIfAbsent(
    sparkContext,
    { _ =>
      val begun = new Coordination(sparkContext)
      sparkContext.addSparkListener(begun)
      begun
    }
  )

  /** A clock that never goes back. */
  private def now(): Long = TimeUnit.NANOSECONDS.toMillis(System.nanoTime())
}
