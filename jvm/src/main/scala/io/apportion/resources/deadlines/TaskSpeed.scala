package io.apportion.resources.deadlines

import io.apportion.util.PerApplication

/** Bytes, number and run time of finished tasks. */
private[resources] final class TaskSpeed {
  private var bytes, tasks, millis = 0L

  def add(read: Long, runTime: Long): Unit = synchronized {
    bytes += read
    tasks += 1
    millis += runTime
  }

  def meanBytes: Double = synchronized(if (tasks == 0) 0 else bytes.toDouble / tasks)

  /** Bytes that a slot has read per second; 0 if no task has finished. */
  def bytesPerSecond: Double = synchronized(if (millis == 0) 0 else bytes * 1000.0 / millis)
}

private[resources] object TaskSpeed {

  /** The speed of all tasks of tracked queries. */
  val inApplication = new PerApplication(_ => new TaskSpeed)
}
