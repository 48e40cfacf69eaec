package org.apache.spark.sql.apportion.exchange.writer

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

  /** Fields of a dependency, as in `ShuffleExchangeExec.prepareShuffleDependency`: checksums, and whether to repeat. */
  def fields(blocks: Int): Seq[Any] = {
    val conf = SQLConf.get
    val repeats = conf.shuffleChecksumMismatchFullRetryEnabled
    val shared: RowBasedChecksum = new ChecksumOfRows
    Seq(Array.fill(if (repeats || conf.shuffleOrderIndependentChecksumEnabled) blocks else 0)(shared), repeats)
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
