package org.apache.spark.sql.apportion.exchange.writer

import java.util.function.IntSupplier

import scala.collection.AbstractIterator

import org.apache.spark.shuffle.ShuffleWriteMetricsReporter
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.util.MutablePair

/**
 * Gathers the rows of each partition, as rows with equal keys take less space side by side. A batch is valid until the next
 * one.
 *
 * @param rows        rows with their blocks
 * @param partitions  number of partitions
 * @param partitionOf partition of the row that `rows` gave last
 * @param onRow       receives each row with its block
 */
private[exchange] final class RowBatches(
    rows: Iterator[Product2[Int, InternalRow]],
    partitions: Int,
    partitionOf: IntSupplier,
    onRow: (Int, InternalRow) => Unit
) extends AbstractIterator[Product2[Int, SerializedRows]] {
  private val source = rows.buffered
  private val batches = new Array[SerializedRows](partitions)
  private val blockOf = new Array[Int](partitions)
  private val taken = new MutablePair[Int, SerializedRows]()

  /** First partition that may have rows in its batch, once there are no more rows. */
  private var rest = 0

  /** Number of rows so far. */
  var count = 0L

  override def hasNext: Boolean = {
    clearTaken()
    source.hasNext || nextRest() < partitions
  }

  override def next(): Product2[Int, SerializedRows] = {
    clearTaken()
    var full = -1
    while (full < 0 && source.hasNext) full = addNext()
    val partition = if (full >= 0) full else nextRest()
    taken.update(blockOf(partition), batches(partition))
    taken
  }

  private def clearTaken(): Unit = if (taken._2 != null) taken._2.clear()

  /** The next partition with rows in its batch, once there are no more rows. */
  private def nextRest(): Int = {
    while (rest < partitions && (batches(rest) == null || batches(rest).isEmpty)) rest += 1
    rest
  }

  /** Adds the next row to the batch of its partition. Gives the partition if its batch has no room for more; -1 otherwise. */
  private def addNext(): Int = {
    val placed = source.head
    val block = placed._1
    val partition = partitionOf.getAsInt
    if (batches(partition) == null) batches(partition) = new SerializedRows(RowBatches.capacity(partitions))
    val batch = batches(partition)
    // A batch goes to one block, so the row of another one waits until the batch was taken.
    if (!batch.isEmpty && blockOf(partition) != block) partition
    else {
      val row = placed._2.asInstanceOf[UnsafeRow]
      source.next()
      blockOf(partition) = block
      batch.add(row)
      onRow(block, row)
      count += 1
      if (batch.isFull) partition else -1
    }
  }
}

private[exchange] object RowBatches {

  /** Bytes of the batches of all partitions at most. Spark's memory manager does not count them. */
  private val MaxBytes = 4 << 20
  private val MaxCapacity = 8 << 10

  /** Bytes of the batch of a partition. */
  def capacity(partitions: Int): Int = (MaxBytes / partitions).min(MaxCapacity)

  /** Metrics for a writer that takes each batch for one row. */
  final class Metrics(ofRows: ShuffleWriteMetricsReporter) extends ShuffleWriteMetricsReporter {
    override private[spark] def incBytesWritten(n: Long): Unit = ofRows.incBytesWritten(n)
    override private[spark] def decBytesWritten(n: Long): Unit = ofRows.decBytesWritten(n)
    override private[spark] def incWriteTime(n: Long): Unit = ofRows.incWriteTime(n)
    override private[spark] def incRecordsWritten(n: Long): Unit = ()
    override private[spark] def decRecordsWritten(n: Long): Unit = ()
  }
}
