package org.apache.spark.sql.apportion.exchange

import java.util.function.ToIntFunction

import scala.collection.mutable

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
 * @param blocks      metric of the blocks that map tasks write
 */
private[exchange] final class PlacedRows(
    rows: Iterator[InternalRow],
    partitionOf: ToIntFunction[UnsafeRow],
    chooser: BlockChooser,
    blocks: SQLMetric
) extends Iterator[Product2[Int, InternalRow]] {
  private val placed = new MutablePair[Int, InternalRow]()
  private val samples = mutable.Map.empty[Int, CompressedSample]
  private lazy val kept = firstRows()
  private var isOpen = true

  /** Whether there are more rows than it takes a short time to sort. */
  lazy val isLarge: Boolean = !kept.isEmpty && rows.hasNext

  override def hasNext: Boolean = !kept.isEmpty || rows.hasNext || {
    if (isOpen) {
      isOpen = false
      blocks += chooser.written
    }
    false
  }

  override def next(): Product2[Int, InternalRow] =
    if (kept.isEmpty) {
      val row = rows.next().asInstanceOf[UnsafeRow]
      placed.update(choose(partitionOf.applyAsInt(row), row), row)
    } else {
      val partition = kept.nextPartition
      val row = kept.remove()
      placed.update(chooser.choose(partition, row.getSizeInBytes), row)
    }

  private def choose(partition: Int, row: UnsafeRow): Int = {
    val block = chooser.choose(partition, row.getSizeInBytes)
    if (chooser.needsRatio(block)) measure(block, row)
    block
  }

  private def firstRows(): KeptRows = {
    val kept = new KeptRows
    var limit = PlacedRows.BytesPerFile
    while (kept.bytes < limit && rows.hasNext) {
      val row = rows.next().asInstanceOf[UnsafeRow]
      val partition = partitionOf.applyAsInt(row)
      choose(partition, row)
      kept.add(partition, row)
      if (kept.bytes >= limit) limit = (chooser.written * PlacedRows.BytesPerFile).min(PlacedRows.MaxBytes)
    }
    if (chooser.isDivided) chooser.startAgain(kept.partitions, kept.sizes) else chooser.forget()
    kept
  }

  private def measure(block: Int, row: UnsafeRow): Unit = {
    val sample = samples.getOrElseUpdate(block, new CompressedSample(chooser.bytesToMeasure(block)))
    sample.add(row)
    if (sample.isComplete) {
      chooser.setRatio(block, sample.ratio)
      samples -= block
    }
  }
}

private object PlacedRows {

  /** Bytes of rows that take as long to sort as a file takes to write and to merge, where files are slow. */
  private val BytesPerFile = 256L << 10

  /** Maximum bytes of rows to keep. */
  private val MaxBytes = 8L << 20
}
