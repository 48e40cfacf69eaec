package org.apache.spark.sql.apportion.exchange.writer

import org.apache.spark.{PartitionIdPassthrough, ShuffleDependency}
import org.apache.spark.rdd.RDD
import org.apache.spark.scheduler.MapStatus
import org.apache.spark.serializer.Serializer
import org.apache.spark.shuffle.ShuffleWriteProcessor
import org.apache.spark.shuffle.checksum.RowBasedChecksum
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRowChecksum
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.storage.BlockManagerId

/**
 * A shuffle of rows into blocks. From Spark 4.1 on, it has a checksum of the rows of each block. If another attempt of a
 * map task has other checksums, Spark repeats the tasks that read the shuffle. Another attempt of an adaptive write may
 * place the same rows into other blocks. So all blocks share one checksum, which covers the whole map output.
 */
private[apportion] object RowDependency {
  def apply(
      rows: RDD[Product2[Int, InternalRow]],
      blocks: Int,
      serializer: Serializer,
      processor: ShuffleWriteProcessor
  ): ShuffleDependency[Int, InternalRow, InternalRow] =
    new ShuffleDependency[Int, InternalRow, InternalRow](
      rows,
      new PartitionIdPassthrough(blocks),
      serializer,
      None,
      None,
      false,
      processor,
      checksums(blocks),
      SQLConf.get.shuffleChecksumMismatchFullRetryEnabled
    )

  def addToChecksum(
      dependency: ShuffleDependency[Int, InternalRow, InternalRow],
      block: Int,
      row: InternalRow
  ): Unit = {
    val checksums = dependency.rowBasedChecksums
    if (checksums.nonEmpty) checksums(block).update(block, row)
  }

  /** Result of a map task. */
  def mapStatus(
      dependency: ShuffleDependency[Int, InternalRow, InternalRow],
      location: BlockManagerId,
      sizes: Array[Long],
      mapId: Long
  ): MapStatus =
    MapStatus(location, sizes, mapId, RowBasedChecksum.getAggregatedChecksumValue(dependency.rowBasedChecksums))

  /** As in `ShuffleExchangeExec.prepareShuffleDependency`, where each block has a checksum of its own. */
  private def checksums(blocks: Int): Array[RowBasedChecksum] =
    if (SQLConf.get.shuffleOrderIndependentChecksumEnabled || SQLConf.get.shuffleChecksumMismatchFullRetryEnabled) {
      val shared = new ChecksumOfRows
      Array.fill(blocks)(shared)
    } else Array.empty
}

/** A checksum of rows. Spark's writers also pass batches, whose rows were added one by one. */
private final class ChecksumOfRows extends UnsafeRowChecksum {
  override def update(key: Any, value: Any): Unit = value match {
    case _: SerializedRows => ()
    case row               => super.update(key, row)
  }
}
