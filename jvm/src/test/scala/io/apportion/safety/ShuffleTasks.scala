package io.apportion.safety

import org.apache.spark.apportion.Listeners
import org.apache.spark.scheduler.{SparkListener, SparkListenerTaskEnd}
import org.apache.spark.sql.SparkSession

/** What the tasks of a query read from shuffles. */
final case class ShuffleTasks(largestBytes: Long, tasks: Int)

object ShuffleTasks {

  /** Of the tasks that run while `body` does. */
  def during(session: SparkSession)(body: => Unit): ShuffleTasks = {
    val context = session.sparkContext
    var read = Vector.empty[(Int, Long)]
    val listener = new SparkListener {
      override def onTaskEnd(end: SparkListenerTaskEnd): Unit = if (end.taskMetrics != null) {
        val bytes = end.taskMetrics.shuffleReadMetrics.totalBytesRead
        read :+= (end.stageId -> bytes)
      }
    }
    Listeners.drain(context)
    context.addSparkListener(listener)
    try {
      body
      Listeners.drain(context)
    } finally context.removeSparkListener(listener)
    val readers = read.groupBy(_._1).values.filter(_.exists(_._2 > 0))
    ShuffleTasks(read.map(_._2).foldLeft(0L)(_ max _), readers.map(_.size).sum)
  }
}
