package io.apportion.resources

import java.util.concurrent.{Executors, ScheduledExecutorService, TimeUnit}

import scala.util.control.NonFatal

import org.slf4j.LoggerFactory

/**
 * The thread of a coordinator: it polls, and does what may be slow.
 *
 * @param poll what it does each `intervalMillis`
 */
private[resources] final class SlotTimer(intervalMillis: Long)(poll: => Unit) {
  import SlotTimer.quietly

  private var executor = Option.empty[ScheduledExecutorService]

  /** Starts the thread if it does not run. */
  def start(): Unit = synchronized {
    if (executor.isEmpty) {
      val started = Executors.newSingleThreadScheduledExecutor { (body: Runnable) =>
        val thread = new Thread(body, "apportion-resources")
        thread.setDaemon(true)
        thread
      }
      executor = Some(started)
      val polling: Runnable = () => quietly("Polling the slots")(poll)
      started.scheduleWithFixedDelay(polling, intervalMillis, intervalMillis, TimeUnit.MILLISECONDS)
    }
  }

  /** Runs `body` in the thread, if there is one. `what` is for the log, should it fail. */
  def execute(what: String)(body: => Unit): Unit =
    synchronized(executor.filterNot(_.isShutdown).foreach(_.execute(() => quietly(what)(body))))

  /** Stops the thread, after it has done what is in its queue. It can start again. */
  def stop(): Unit = synchronized {
    executor.foreach(_.shutdown())
    executor = None
  }

  /** Stops the thread at once and for good. */
  def end(): Unit = synchronized(executor.foreach(_.shutdownNow()))
}

private[resources] object SlotTimer {
  private val log = LoggerFactory.getLogger(getClass.getName.stripSuffix("$"))

  def quietly(what: String)(body: => Unit): Unit =
    try body
    catch {
      case failure @ (NonFatal(_) | _: LinkageError) =>
        log.warn(s"$what failed. Apportion tries again after the next change.", failure)
    }
}
