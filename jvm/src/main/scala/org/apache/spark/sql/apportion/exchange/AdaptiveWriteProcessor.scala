package org.apache.spark.sql.apportion.exchange

import scala.util.control.NonFatal

import org.apache.spark.{ShuffleDependency, SparkEnv, TaskContext}
import org.apache.spark.scheduler.MapStatus
import org.apache.spark.shuffle.{ShuffleHandle, ShuffleWriteMetricsReporter, ShuffleWriter}
import org.apache.spark.shuffle.sort.{BypassMergeSortShuffleHandle, SerializedShuffleHandle}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLShuffleWriteMetricsReporter}

/**
 * Chooses one of Spark's shuffle writers for each map task. A writer with a file per block does not sort the rows, but
 * takes time for each block, written or not (`BypassMergeSortShuffleWriter`). A writer that sorts rows by their block
 * takes time for each row (`UnsafeShuffleWriter`). Spark chooses by the number of blocks for all map tasks at once
 * (`SortShuffleManager.registerShuffle`), and cannot know that most blocks stay empty.
 *
 * @param canOpenFiles whether map tasks may write a file per block
 */
private[apportion] final class AdaptiveWriteProcessor(metrics: Map[String, SQLMetric], canOpenFiles: Boolean)
    extends RowWriteProcessor {
  import AdaptiveWriteProcessor._

  override protected def createMetricsReporter(context: TaskContext): ShuffleWriteMetricsReporter =
    new SQLShuffleWriteMetricsReporter(context.taskMetrics().shuffleWriteMetrics, metrics)

  override protected def writeRows(
      rows: Iterator[_],
      dependency: ShuffleDependency[_, _, _],
      mapId: Long,
      context: TaskContext
  ): MapStatus = {
    val placed = rows.asInstanceOf[PlacedRows]
    val opensFiles = canOpenFiles && placed.isLarge
    val writer = SparkEnv.get.shuffleManager
      .getWriter[Int, InternalRow](handle(dependency, opensFiles), mapId, context, createMetricsReporter(context))
    try {
      writer.write(placed)
      writer.stop(success = true).get
    } catch {
      case failure: Exception =>
        stopAfterFailure(writer)
        throw failure
    }
  }

  private def stopAfterFailure(writer: ShuffleWriter[_, _]): Unit =
    try writer.stop(success = false)
    catch { case NonFatal(failure) => logDebug("Could not stop the writer", failure) }
}

private object AdaptiveWriteProcessor {
  private def handle(dependency: ShuffleDependency[_, _, _], opensFiles: Boolean): ShuffleHandle = {
    val rows = dependency.asInstanceOf[ShuffleDependency[Int, InternalRow, InternalRow]]
    if (opensFiles) new BypassMergeSortShuffleHandle(rows.shuffleId, rows)
    else new SerializedShuffleHandle(rows.shuffleId, rows)
  }
}
