package org.apache.spark.sql.apportion.exchange.writer

import scala.reflect.classTag

import io.apportion.util.AnyVersion
import org.apache.spark.{PartitionIdPassthrough, SPARK_VERSION, ShuffleDependency}
import org.apache.spark.rdd.RDD
import org.apache.spark.serializer.Serializer
import org.apache.spark.shuffle.ShuffleWriteProcessor
import org.apache.spark.sql.catalyst.InternalRow

/** A shuffle of rows into blocks. Before Spark 4.1, it has no checksums of rows. */
private[apportion] object RowDependency {
  type OfRows = ShuffleDependency[Int, InternalRow, InternalRow]

  private val hasChecksums = SPARK_VERSION >= "4.1"

  def apply(
      rows: RDD[Product2[Int, InternalRow]],
      blocks: Int,
      serializer: Serializer,
      processor: ShuffleWriteProcessor
  ): OfRows =
    AnyVersion.create(
      ShuffleDependency,
      classOf[OfRows],
      Seq[Any](rows, new PartitionIdPassthrough(blocks), serializer, None, None, false, processor) ++
        (if (hasChecksums) RowChecksums.fields(blocks) else Nil),
      Seq(classTag[Int], classTag[InternalRow], classTag[InternalRow])
    )

  def addToChecksum(dependency: OfRows, block: Int, row: InternalRow): Unit =
    if (hasChecksums) RowChecksums.add(dependency, block, row)

  /** The last field of the result of a map task, if there is one. */
  def checksum(dependency: OfRows): Option[Long] = Option.when(hasChecksums)(RowChecksums.total(dependency))
}
