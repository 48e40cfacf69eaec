package io.apportion.rules

import java.util.concurrent.TimeUnit

import scala.collection.mutable

/**
 * Finds queries whose end a listener did not hear, so that it can forget them: a busy listener bus drops events. The
 * events of a query that has ended may still be on their way, so a query is lost only some time after its end.
 *
 * @param delay nanoseconds after which a query that has ended is lost
 */
private[apportion] final class LostQueries(
    isRunning: Long => Boolean = CurrentQuery.running(_).isDefined,
    delay: Long = LostQueries.LongestDelay
) {
  private val endedAt = mutable.Map.empty[Long, Long]

  /** Returns the lost ones of these queries, each once. `now` is in nanoseconds. */
  def among(queries: Iterable[Long], now: Long = System.nanoTime()): Set[Long] = {
    val ended = queries.filterNot(isRunning).toSet
    endedAt.filterInPlace((query, _) => ended(query))
    ended.foreach(endedAt.getOrElseUpdate(_, now))
    val lost = endedAt.collect { case (query, at) if now - at > delay => query }.toSet
    endedAt --= lost
    lost
  }
}

private[apportion] object LostQueries {

  /** Longest time, in nanoseconds, that the events of a query are on their way. */
  val LongestDelay: Long = TimeUnit.MINUTES.toNanos(10)
}
