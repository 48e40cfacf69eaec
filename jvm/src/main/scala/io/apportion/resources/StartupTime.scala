package io.apportion.resources

import java.util.concurrent.TimeUnit

/** Measures the time from a request for executors until the next executor is registered. Times are milliseconds. */
private[resources] final class StartupTime {
  import StartupTime._

  private var since = Option.empty[Long]
  private var last = Default

  def requested(now: Long): Unit = synchronized { since = since.orElse(Some(now)) }

  def added(now: Long): Unit = synchronized {
    for (request <- since) last = (now - request).max(0).min(Longest)
    since = None
  }

  /** The last time, or a guess. */
  def millis: Long = synchronized(last)
}

private object StartupTime {
  private val Default = TimeUnit.SECONDS.toMillis(10)

  /** A full cluster gives no executors for a long time. That says nothing about the next request. */
  private val Longest = TimeUnit.MINUTES.toMillis(2)
}
