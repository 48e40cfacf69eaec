package org.apache.spark.sql.apportion.exchange.writer

import scala.reflect.classTag

import io.apportion.util.AnyVersion
import org.apache.spark.{PartitionIdPassthrough, ShuffleDependency}
import org.apache.spark.rdd.RDD
import org.apache.spark.serializer.Serializer
import org.apache.spark.shuffle.ShuffleWriteProcessor
import org.apache.spark.shuffle.checksum.RowBasedChecksum
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRowChecksum
import org.apache.spark.sql.internal.SQLConf

/**
 * A checksum of the rows of each block, from Spark 4.1 on. If another attempt of a map task has other checksums, Spark
 * repeats the tasks that read the shuffle. Another attempt of an adaptive write may place the same rows into other
 * blocks. So all blocks share one checksum, which covers the whole map output.
 */
private[writer] object RowChecksums {
  import RowDependency.OfRows

  /** As in `ShuffleExchangeExec.prepareShuffleDependency`, where each block has a checksum of its own. */
  def areWanted: Boolean =
    SQLConf.get.shuffleOrderIndependentChecksumEnabled || SQLConf.get.shuffleChecksumMismatchFullRetryEnabled

  def dependency(
      rows: RDD[Product2[Int, InternalRow]],
      blocks: Int,
      serializer: Serializer,
      processor: ShuffleWriteProcessor
  ): OfRows = {
    val shared: RowBasedChecksum = new ChecksumOfRows
    AnyVersion.create(
      ShuffleDependency,
      classOf[OfRows],
      Seq[Any](
        rows,
        new PartitionIdPassthrough(blocks),
        serializer,
        None,
        None,
        false,
        processor,
        Array.fill(blocks)(shared),
        SQLConf.get.shuffleChecksumMismatchFullRetryEnabled
      ),
      Seq(classTag[Int], classTag[InternalRow], classTag[InternalRow])
    )
  }

  def add(dependency: OfRows, block: Int, row: InternalRow): Unit = {
    val checksums = dependency.rowBasedChecksums
    if (checksums.nonEmpty) checksums(block).update(block, row)
  }

  def total(dependency: OfRows): Long = RowBasedChecksum.getAggregatedChecksumValue(dependency.rowBasedChecksums)
}

/** A checksum of rows. Spark's writers also pass batches, whose rows were added one by one. */
private final class ChecksumOfRows extends UnsafeRowChecksum {
  override def update(key: Any, value: Any): Unit = value match {
    case _: SerializedRows => ()
    case row               => super.update(key, row)
  }
}
