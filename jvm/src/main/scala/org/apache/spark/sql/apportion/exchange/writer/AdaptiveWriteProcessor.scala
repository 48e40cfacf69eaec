package org.apache.spark.sql.apportion.exchange.writer

import scala.util.control.NonFatal

import org.apache.spark.{ShuffleDependency, SparkEnv, TaskContext}
import org.apache.spark.scheduler.MapStatus
import org.apache.spark.shuffle.{ShuffleWriteMetricsReporter, ShuffleWriter}
import org.apache.spark.shuffle.sort.{BypassMergeSortShuffleHandle, SerializedShuffleHandle}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLShuffleWriteMetricsReporter}

/**
 * Chooses how each map task writes its shuffle. A task with few rows writes them from memory ([[KeptRowsWriter]]). Other
 * rows go to one of Spark's writers, in batches ([[RowBatches]]). `BypassMergeSortShuffleWriter` opens a file per block and
 * needs no memory of tasks, but takes time for each block, written or not. `UnsafeShuffleWriter` sorts the batches in the
 * memory of tasks, and spills them if it does not get enough. Spark chooses by the number of blocks for all map tasks at
 * once (`SortShuffleManager.registerShuffle`), and cannot know that most blocks stay empty.
 *
 * @param canOpenFiles whether map tasks may write a file per block, if they fill it
 */
private[apportion] final class AdaptiveWriteProcessor(metrics: Map[String, SQLMetric], canOpenFiles: Boolean)
    extends RowWriteProcessor {

  override protected def createMetricsReporter(context: TaskContext): ShuffleWriteMetricsReporter =
    new SQLShuffleWriteMetricsReporter(context.taskMetrics().shuffleWriteMetrics, metrics)

  override protected def writeRows(
      rows: Iterator[_],
      dependency: ShuffleDependency[_, _, _],
      mapId: Long,
      context: TaskContext
  ): MapStatus = {
    val placed = rows.asInstanceOf[PlacedRows]
    val ofRows = dependency.asInstanceOf[ShuffleDependency[Int, InternalRow, InternalRow]]
    val ofBatches = dependency.asInstanceOf[ShuffleDependency[Int, SerializedRows, SerializedRows]]
    val isFromMemory = !placed.isLarge && KeptRowsWriter.canWrite
    val handle =
      if (isFromMemory || canOpenFiles && placed.fillsFiles)
        new BypassMergeSortShuffleHandle(ofBatches.shuffleId, ofBatches)
      else new SerializedShuffleHandle(ofBatches.shuffleId, ofBatches)
    val metrics = createMetricsReporter(context)
    // Spark notes each map task that asks for a writer, and deletes its files with the shuffle.
    val writer = SparkEnv.get.shuffleManager
      .getWriter[Int, SerializedRows](handle, mapId, context, new RowBatches.Metrics(metrics))
    val sizes =
      if (isFromMemory) KeptRowsWriter.write(placed, ofRows, mapId, metrics)
      else
        try {
          val batches =
            new RowBatches(placed, placed.partitions, () => placed.partition, RowDependency.addToChecksum(ofRows, _, _))
          writer.write(batches)
          metrics.incRecordsWritten(batches.count)
          writer.stop(success = true)
          writer.getPartitionLengths()
        } catch {
          case failure: Exception =>
            stopAfterFailure(writer)
            throw failure
        }
    val location = SparkEnv.get.blockManager.shuffleServerId
    BlockSizes.status(sizes, context.numPartitions(), location, mapId, RowDependency.checksum(ofRows))
  }

  private def stopAfterFailure(writer: ShuffleWriter[_, _]): Unit =
    try writer.stop(success = false)
    catch { case NonFatal(failure) => logDebug("Could not stop the writer", failure) }
}
