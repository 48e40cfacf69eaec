package org.apache.spark.sql.apportion.exchange.writer

import scala.collection.AbstractIterator

import org.apache.spark.shuffle.ShuffleWriteMetricsReporter
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.util.MutablePair

/**
 * Gathers the rows of each block. A batch is valid until the next one.
 *
 * @param rows   rows with their blocks
 * @param blocks number of blocks
 * @param onRow  receives each row with its block
 */
private[exchange] final class RowBatches(
    rows: Iterator[Product2[Int, InternalRow]],
    blocks: Int,
    onRow: (Int, InternalRow) => Unit
) extends AbstractIterator[Product2[Int, SerializedRows]] {
  private val batches = new Array[SerializedRows](blocks)
  private val taken = new MutablePair[Int, SerializedRows]()

  /** First block that may have rows in its batch, once there are no more rows. */
  private var rest = 0

  /** Number of rows so far. */
  var count = 0L

  override def hasNext: Boolean = {
    clearTaken()
    rows.hasNext || nextRest() < blocks
  }

  override def next(): Product2[Int, SerializedRows] = {
    clearTaken()
    var full = -1
    while (full < 0 && rows.hasNext) full = addNext()
    val block = if (full >= 0) full else nextRest()
    taken.update(block, batches(block))
    taken
  }

  private def clearTaken(): Unit = if (taken._2 != null) taken._2.clear()

  /** The next block with rows in its batch, once there are no more rows. */
  private def nextRest(): Int = {
    while (rest < blocks && (batches(rest) == null || batches(rest).isEmpty)) rest += 1
    rest
  }

  /** Adds the next row to its batch, and gives the block if the batch is full; -1 otherwise. */
  private def addNext(): Int = {
    val placed = rows.next()
    val block = placed._1
    val row = placed._2.asInstanceOf[UnsafeRow]
    if (batches(block) == null) batches(block) = new SerializedRows(RowBatches.capacity(blocks))
    val batch = batches(block)
    batch.add(row)
    onRow(block, row)
    count += 1
    if (batch.isFull) block else -1
  }
}

private[exchange] object RowBatches {

  /** Bytes of the batches of all blocks at most. Spark's memory manager does not count them. */
  private val MaxBytes = 4 << 20
  private val MaxCapacity = 8 << 10

  /** Bytes of the batch of a block. */
  def capacity(blocks: Int): Int = (MaxBytes / blocks).min(MaxCapacity)

  /** Metrics for a writer that takes each batch for one row. */
  final class Metrics(ofRows: ShuffleWriteMetricsReporter) extends ShuffleWriteMetricsReporter {
    override private[spark] def incBytesWritten(n: Long): Unit = ofRows.incBytesWritten(n)
    override private[spark] def decBytesWritten(n: Long): Unit = ofRows.decBytesWritten(n)
    override private[spark] def incWriteTime(n: Long): Unit = ofRows.incWriteTime(n)
    override private[spark] def incRecordsWritten(n: Long): Unit = ()
    override private[spark] def decRecordsWritten(n: Long): Unit = ()
  }
}
