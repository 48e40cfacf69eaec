package io.apportion.resources

import java.util.concurrent.TimeUnit

import io.apportion.decision.Sentence
import org.apache.spark.SparkContext
import org.apache.spark.apportion.{Cluster, ExecutorDemand, ExecutorResources}
import org.slf4j.LoggerFactory

/**
 * Asks for executors with the slots that a [[SlotState]] declares. Dynamic allocation is told how many tasks to expect, and
 * other cluster managers get a request.
 */
private[resources] final class ExecutorRequests(sparkContext: SparkContext, timer: SlotTimer) {
  import ExecutorRequests._

  private val demand = if (Cluster.isDynamic(sparkContext)) Some(new ExecutorDemand) else None

  /** Time of the first request since an executor was registered. */
  private var requestedAt = Option.empty[Long]
  private var lastStartup = FirstGuess

  /** Milliseconds from the last request until the next executor was registered, or a guess. */
  def startupMillis: Long = synchronized(lastStartup)

  def slotsAdded(now: Long): Unit = synchronized {
    for (request <- requestedAt) lastStartup = (now - request).max(0).min(LongestStartup)
    requestedAt = None
  }

  /** Requests what `state` declares, unless `before` declared the same. */
  def follow(before: SlotState, state: SlotState, now: Long): Unit = {
    val (earlier, declared) = (before.declared.map(_.slots), state.declared.map(_.slots))
    if (declared.exists(_ > earlier.getOrElse(0).max(state.slots)))
      synchronized { requestedAt = requestedAt.orElse(Some(now)) }
    if (declared != earlier && demand.isEmpty) request(declared)
  }

  /** In the timer's thread, because the cluster manager may answer slowly. `None` restores Spark's first request. */
  private def request(slots: Option[Int]): Unit = {
    val what = slots.fold("the initial number of executors")(n => s"executors with ${Sentence.count(n, "slot")}")
    timer.execute(s"Requesting $what") {
      val accepted =
        slots.fold(ExecutorResources.requestInitial(sparkContext))(ExecutorResources.request(sparkContext, _))
      if (!accepted) log.warn(s"The cluster manager did not accept the request for $what")
    }
  }

  /**
   * Tells dynamic allocation how many tasks to expect beyond the submitted ones. A query with a deadline needs its
   * target, and the others need at least a slot for each task.
   *
   * @param openTasks the submitted tasks of a query that have not finished
   */
  def expect(state: SlotState, openTasks: Long => Long): Unit = for (demand <- demand) {
    val asking = state.queries.filter { case (_, query) => query.asks && query.phase != Phase.Failed }
    val (alone, sharing) = asking.partition(_._2.hasDeadline)
    val open = asking.map { case (id, _) => id -> openTasks(id) }
    val ofSharing = sharing.map(_._2.need.target.toLong).maxOption.getOrElse(0L).max(sharing.keys.map(open).sum)
    val expected = alone.map(_._2.need.target.toLong).sum + ofSharing - open.values.sum
    SlotTimer.quietly("Telling dynamic allocation the expected tasks") {
      demand.expect(sparkContext, expected.max(Int.MinValue.toLong).min(Int.MaxValue.toLong).toInt)
    }
  }
}

private object ExecutorRequests {
  private val log = LoggerFactory.getLogger(getClass.getName.stripSuffix("$"))
  private val FirstGuess = TimeUnit.SECONDS.toMillis(10)

  /** A full cluster gives no executors for a long time. That says nothing about the next request. */
  private val LongestStartup = TimeUnit.MINUTES.toMillis(2)
}
