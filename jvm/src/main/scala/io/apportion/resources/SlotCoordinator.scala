package io.apportion.resources

import java.util.concurrent.TimeUnit

import scala.collection.concurrent.TrieMap

import io.apportion.report.{ReportSource, ReportedDecision}
import io.apportion.resources.deadlines.{QueryCosts, QueryProgress, SlotSupply, SlotsForDeadline, TaskSpeed}
import io.apportion.resources.planned.{PlannedStage, PlannedStages}
import io.apportion.rules.LostQueries
import io.apportion.settings.ResourceSettings.MinSlots
import org.apache.spark.SparkContext
import org.apache.spark.apportion.{Cluster, ExecutorResources, WaitingJob}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.SparkPlan
import org.slf4j.LoggerFactory

/**
 * Runs the [[SlotState]] of one application: feeds it with executor changes and the time, makes queries wait, and
 * requests executors. It is created for the first query that needs it; see [[SlotSettings.needsCoordination]]. Other
 * queries are not tracked. Its thread runs only while it tracks a query or requests executors.
 */
private[apportion] final class SlotCoordinator(sparkContext: SparkContext) {
  import SlotCoordinator._

  private var state =
    SlotState(Cluster.slots(sparkContext), changedAt = now() - ExecutorResources.millisSinceAdded(sparkContext))

  private val queries = new TrackedQueries
  private val timer = new SlotTimer(LongestSleepMillis)(poll())
  private val requests = new ExecutorRequests(sparkContext, timer)
  private val lost = new LostQueries(delay = TimeUnit.MILLISECONDS.toNanos(LongestDelayMillis))
  private val history = new ResourceHistory

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
    val own = earlier.getOrElse(new TrackedQuery(query, settings, known.map(_._1), now()))
    for ((_, stages) <- known) synchronized { own.plannedStages = stages }
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

  private def begin(begun: TrackedQuery, plan: Option[SlotsForDeadline]): Unit = {
    dropLost()
    val own = queries.add(begun)
    import own.{id, settings}
    plan.foreach(report(own, _))
    timer.start()
    val target = plan.map(_.slots).orElse(Option.when(settings.followsStages)(own.slotsForNextStages).filter(_ > 0))
    val need = target.fold(settings.need)(settings.need.aimingAt)
    update(_.begin(id, need, settings.timeouts, settings.asks, now(), settings.finishWithin.isDefined))
    if (settings.followsStages) update(_.retarget(id, own.slotsForStages, now()))
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
        queryEnds(query, succeeded = false)
        throw failure
    } finally job.end()

  /** Sets the target of a query to the slots that its next stage can use. */
  def stageNeeds(query: Long, slots: Int): Unit =
    for (own <- queries.get(query) if own.settings.followsStages)
      synchronized(update(_.retarget(query, slots.max(own.slotsForStages), now())))

  /** The smallest number of slots on which a query ends before its deadline. Not under the lock, as it takes time. */
  private def planned(own: TrackedQuery): Option[SlotsForDeadline] = {
    def speed = Seq(own.run.progress.taskSpeed, speedOfAll).map(_.bytesPerSecond).find(_ > 0).getOrElse(0.0)
    val plan = synchronized(own.run.toPlan(now(), PlannedStages.costs(own.plannedStages, speed)))
    val present = synchronized(state.slots)
    plan.map(_.slots(SlotSupply(own.settings.need.max, present, requests.startupMillis)))
  }

  private[resources] def speedOfAll: TaskSpeed = TaskSpeed.inApplication.of(sparkContext)

  /** Sets the target of a query with a deadline anew, in the timer's thread. */
  private[resources] def replanSoon(own: TrackedQuery): Unit =
    if (own.settings.finishWithin.isDefined) timer.execute("Planning the slots of a query")(replan(own))

  private def replan(own: TrackedQuery): Unit =
    for (plan <- planned(own)) synchronized {
      if (isTracked(own.id)) {
        report(own, plan)
        update(_.retarget(own.id, plan.slots, now()))
      }
    }

  /** Keeps the expected time for the history of slots, and logs once if the deadline cannot be met. */
  private def report(own: TrackedQuery, plan: SlotsForDeadline): Unit =
    for (text <- own.run.expects(plan)) log.warn(s"Query ${own.id} $text")

  /** Registered slots, and the slots that the query has lost. `None` for a query that is not tracked. */
  def registeredAndLost(query: Long): Option[(Int, Int)] =
    if (isTracked(query)) synchronized(Some((state.slots, state.lost(query)))) else None

  def isTracked(query: Long): Boolean = queries.get(query).isDefined

  /** The number of tracked queries. */
  def tracked: Int = queries.all.size

  def changes: Seq[ResourceChange] = synchronized(history.all)

  /** Adds to what the stages of a query have done. */
  private[resources] def progress(own: TrackedQuery)(add: QueryProgress => Unit): Unit = synchronized {
    add(own.run.progress)
    tellDemand()
  }

  private[resources] def queryEnds(query: Long, succeeded: Boolean): Unit = synchronized {
    // What it has cost is known here, and its time is in the last row of its changes.
    if (succeeded) queries.get(query).foreach(_.run.end(now()))
    update(_.end(query, now()))
    queries.remove(query)
  }

  private[resources] def applicationEnds(): Unit = synchronized {
    timer.end()
    running.remove(sparkContext)
    notifyAll()
  }

  private[resources] def slotsMayHaveChanged(): Unit =
    if (!sparkContext.isStopped) {
      val slots = Cluster.slots(sparkContext)
      synchronized {
        if (slots > state.slots) requests.slotsAdded(now())
        update(_.slotsAre(slots, now()))
      }
    }

  private def update(step: SlotState => SlotState): Unit = {
    val before = state
    state = step(before)
    if (state != before) {
      history.add(before, state)(query => queries.get(query).flatMap(_.run.times(now())))
      requests.follow(before, state, now())
      for (own <- queries.all if state.failed(own.id) && !before.failed(own.id)) cancel(own)
      notifyAll()
    }
    tellDemand()
  }

  private def tellDemand(): Unit = requests.expect(state, queries.get(_).fold(0L)(_.run.progress.openTasks))

  /** Cancels the jobs of a failed query. Their tasks may otherwise wait forever for executors. */
  private def cancel(own: TrackedQuery): Unit = {
    val why = NotEnoughSlots.text(own.settings.requested, state.slots, own.settings.timeouts.timeout)
    own.run.progress.jobs.foreach(job => sparkContext.cancelJob(job, why))
  }

  private def poll(): Unit = if (!sparkContext.isStopped) {
    val slots = Cluster.slots(sparkContext)
    val due = synchronized {
      update(_.slotsAre(slots, now()))
      dropLost()
      if (tracked == 0 && state.declared.isEmpty) timer.stop()
      queries.all.filter(_.settings.isDue(now())).toSeq
    }
    // Outside of the lock, because a policy of the user may be slow.
    due.foreach(replan)
    for {
      own <- due
      policy <- own.settings.rescaling
      load <- synchronized(state.queries.get(own.id).map(query => own.load(query.need, slots, now())))
    } {
      val target = policy.target(load)
      synchronized(update(_.retarget(own.id, target, now())))
    }
  }

  /** Drops queries that have ended, because a busy listener bus loses events. */
  private def dropLost(): Unit = lost.among(queries.all.map(_.id)).foreach(queryEnds(_, succeeded = false))
}

private[apportion] object SlotCoordinator extends ReportSource {
  private val log = LoggerFactory.getLogger(getClass.getName.stripSuffix("$"))
  private val LongestSleepMillis = 1000L

  /** Longest time that the end of a query is on its way. Meanwhile, the query keeps its slots. */
  private[resources] val LongestDelayMillis = 10000L
  private val running = TrieMap.empty[SparkContext, SlotCoordinator]

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
      sparkContext.addSparkListener(new SlotListener(coordinator, coordinator.queries))
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
  private[resources] def now(): Long = TimeUnit.NANOSECONDS.toMillis(System.nanoTime())
}
