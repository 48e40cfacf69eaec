package org.apache.spark.sql.apportion.exchange.writer

import java.util.function.ToIntFunction

import scala.collection.{mutable, AbstractIterator}

import io.apportion.decision.ranges.BlockChooser
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.util.MutablePair

/**
 * Rows of a map task, each with the block that it is written to. The first rows are kept until their number is known, so
 * that their groups are as small as those of the next rows.
 *
 * @param partitionOf shuffle partition of a row
 * @param likelyBytes likely uncompressed bytes of the map task's rows; 0 if nothing is known
 * @param blocks      metric of the blocks that map tasks write
 */
private[exchange] final class PlacedRows(
    rows: Iterator[InternalRow],
    partitionOf: ToIntFunction[UnsafeRow],
    chooser: BlockChooser,
    likelyBytes: Long,
    blocks: SQLMetric
) extends AbstractIterator[Product2[Int, InternalRow]] {
  private val placed = new MutablePair[Int, InternalRow]()
  private val samples = mutable.Map.empty[Int, SerializedRows]
  private val kept = new KeptRows
  private var isOpen = true

  /** Partition of the row that `next` gave last. */
  var partition = 0

  def partitions: Int = chooser.tree.partitions

  /** Block of each row that is kept. */
  private lazy val blockOf: Array[Int] = keepFirst()

  /** Whether there may be more rows than are copied. */
  lazy val isLarge: Boolean = blockOf.nonEmpty && mayHaveMore

  /** Whether the blocks are large enough for a file each. */
  def fillsFiles: Boolean =
    isLarge && likelyBytes.max(BlockChooser.LikelyRows * kept.bytes) >= PlacedRows.FileBytes * chooser.written

  /**
   * Gives the rows of each block, in ascending order of the blocks, if all rows are kept. Rows of a partition are together,
   * as under Spark: rows with equal keys then take less space.
   *
   * @param write receives a block and its rows
   */
  def foreachBlock(write: (Int, Iterator[UnsafeRow]) => Unit): Unit = {
    val order = kept.byPartition(chooser.tree.partitions)
    var start = 0
    while (start < order.length) {
      // All rows of a partition are in one block, and the partitions of a block follow each other.
      val block = blockOf(order(start))
      var end = start + 1
      while (end < order.length && blockOf(order(end)) == block) end += 1
      write(block, Iterator.range(start, end).map(i => kept(order(i))))
      start = end
    }
    blocks += chooser.written
  }

  override def hasNext: Boolean = blockOf.length > kept.removed || rows.hasNext || {
    if (isOpen) {
      isOpen = false
      blocks += chooser.written
    }
    false
  }

  override def next(): Product2[Int, InternalRow] = {
    val i = kept.removed
    if (i < blockOf.length) {
      partition = kept.partition(i)
      placed.update(blockOf(i), kept.remove())
    } else {
      val row = rows.next().asInstanceOf[UnsafeRow]
      partition = partitionOf.applyAsInt(row)
      placed.update(choose(partition, row), row)
    }
    placed
  }

  // The lazy value holds a lock, and the JVM does not compile a loop inside it. The loop's body is a method of its own, as
  // the JVM compiles methods by their calls, and a stage has few tasks.
  private def keepFirst(): Array[Int] = {
    while (kept.bytes < KeptRows.MaxBytes && rows.hasNext) keepNext()
    chooser.place(kept.partitions, kept.sizes, isAll = !mayHaveMore)
  }

  /** A row that is not copied is lost when its source looks for the next one. */
  private def mayHaveMore: Boolean = kept.hasLarge || rows.hasNext

  private def keepNext(): Unit = {
    val row = rows.next().asInstanceOf[UnsafeRow]
    val partition = partitionOf.applyAsInt(row)
    choose(partition, row)
    kept.add(partition, row)
  }

  private def choose(partition: Int, row: UnsafeRow): Int = {
    val block = chooser.choose(partition, row.getSizeInBytes)
    if (chooser.needsRatio(block)) measure(block, row)
    block
  }

  private def measure(block: Int, row: UnsafeRow): Unit = {
    val wanted = chooser.bytesToMeasure(block).min(PlacedRows.SampleBytes).toInt
    val part = new UnsafeRow(row.numFields)
    val sample = samples.getOrElseUpdate(block, new SerializedRows(wanted))
    // A row may be larger than the sample. Its bytes are a multiple of 8.
    part.pointTo(row.getBaseObject, row.getBaseOffset, row.getSizeInBytes.min(wanted / 8 * 8))
    sample.add(part)
    if (sample.isFull) {
      chooser.setRatio(block, sample.compressionRatio)
      samples -= block
    }
  }
}

private object PlacedRows {

  /** Uncompressed bytes of a block that take as long to sort as a file takes to open: 0.1 to 0.7 ms on most disks. */
  private val FileBytes = 200L << 10

  /** Half of the bytes that LZ4, Spark's default, compresses together. */
  private val SampleBytes = 16L << 10
}
