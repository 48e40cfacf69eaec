package io.apportion.resources.deadlines

import scala.collection.mutable

import org.apache.spark.SparkContext

/** Bytes, number and run time of finished tasks. It is not thread-safe. */
private[resources] final class TaskSpeed {
  private var bytes, tasks, millis = 0L

  def add(read: Long, runTime: Long): Unit = {
    bytes += read
    tasks += 1
    millis += runTime
  }

  def meanBytes: Double = if (tasks == 0) 0 else bytes.toDouble / tasks

  /** Bytes that a slot has read per second; 0 if no task has finished. */
  def bytesPerSecond: Double = if (millis == 0) 0 else bytes * 1000.0 / millis
}

private[resources] object TaskSpeed {
  private val byContext = mutable.WeakHashMap.empty[SparkContext, Double]

  /** Bytes that a slot of an application has read per second in tracked queries; 0 if no task has finished. */
  def of(sparkContext: SparkContext): Double = synchronized(byContext.getOrElse(sparkContext, 0.0))

  def update(sparkContext: SparkContext, bytesPerSecond: Double): Unit =
    synchronized(byContext.update(sparkContext, bytesPerSecond))
}
