package org.apache.spark.sql.apportion.exchange.writer

import org.apache.spark.{PartitionIdPassthrough, ShuffleDependency}
import org.apache.spark.rdd.RDD
import org.apache.spark.serializer.Serializer
import org.apache.spark.shuffle.ShuffleWriteProcessor
import org.apache.spark.sql.catalyst.InternalRow

/** A shuffle of rows into blocks. Spark 3.5 has no checksums of rows. */
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
      shuffleWriterProcessor = processor
    )

  def addToChecksum(dependency: ShuffleDependency[Int, InternalRow, InternalRow], block: Int, row: InternalRow): Unit =
    ()

  def checksum(dependency: ShuffleDependency[Int, InternalRow, InternalRow]): Option[Long] = None
}
