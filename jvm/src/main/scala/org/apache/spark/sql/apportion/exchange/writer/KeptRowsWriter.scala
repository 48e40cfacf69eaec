package org.apache.spark.sql.apportion.exchange.writer

import java.util.zip.CheckedOutputStream

import scala.util.control.NonFatal

import org.apache.spark.{ShuffleDependency, SparkEnv}
import org.apache.spark.internal.config.SHUFFLE_IO_PLUGIN_CLASS
import org.apache.spark.shuffle.ShuffleWriteMetricsReporter
import org.apache.spark.shuffle.checksum.ShuffleChecksumSupport
import org.apache.spark.shuffle.sort.SortShuffleManager
import org.apache.spark.shuffle.sort.io.{LocalDiskShuffleDataIO, LocalDiskShuffleMapOutputWriter}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.storage.{ShuffleBlockId, TimeTrackingOutputStream}

/**
 * Writes the output of a map task whose rows are all in memory, block after block. Spark's writers take a temporary file for
 * each block (`BypassMergeSortShuffleWriter`), or buffers of megabytes and a page of memory (`UnsafeShuffleWriter`). For
 * few rows, these take more time than the rows.
 */
private[exchange] object KeptRowsWriter extends ShuffleChecksumSupport {

  /** Whether map outputs go to local files, as they do unless a plugin stores them elsewhere. */
  def canWrite: Boolean = SparkEnv.get.conf.get(SHUFFLE_IO_PLUGIN_CLASS) == classOf[LocalDiskShuffleDataIO].getName

  /** Returns the bytes of each block. */
  def write(
      rows: PlacedRows,
      dependency: ShuffleDependency[Int, InternalRow, InternalRow],
      mapId: Long,
      metrics: ShuffleWriteMetricsReporter
  ): Array[Long] = {
    val env = SparkEnv.get
    val shuffle = dependency.shuffleId
    val blocks = dependency.partitioner.numPartitions
    // In Spark 4.3, the trait of shuffle managers has no resolver.
    val files = env.shuffleManager.asInstanceOf[SortShuffleManager].shuffleBlockResolver
    val output = new LocalDiskShuffleMapOutputWriter(shuffle, mapId, blocks, files, env.conf)
    val checksums = createPartitionChecksums(blocks, env.conf)
    val serializer = dependency.serializer.newInstance()
    val batch = new SerializedRows(RowBatches.capacity(partitions = 1))
    try {
      rows.foreachBlock { (block, its) =>
        val file = new TimeTrackingOutputStream(metrics, output.getPartitionWriter(block).openStream())
        val checked = if (checksums.isEmpty) file else new CheckedOutputStream(file, checksums(block))
        val stream = serializer.serializeStream(
          env.serializerManager.wrapStream(ShuffleBlockId(shuffle, mapId, block), checked)
        )
        def writeBatch(): Unit = {
          stream.writeValue(batch)
          batch.clear()
        }
        try {
          its.foreach { row =>
            batch.add(row)
            RowDependency.addToChecksum(dependency, block, row)
            metrics.incRecordsWritten(1)
            if (batch.isFull) writeBatch()
          }
          writeBatch()
        } finally stream.close()
      }
      val start = System.nanoTime()
      val sizes = output.commitAllPartitions(getChecksumValues(checksums)).getPartitionLengths
      metrics.incWriteTime(System.nanoTime() - start)
      metrics.incBytesWritten(sizes.sum)
      sizes
    } catch {
      case failure: Throwable =>
        try output.abort(failure)
        catch { case NonFatal(second) => failure.addSuppressed(second) }
        throw failure
    }
  }
}
