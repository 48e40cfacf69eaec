package org.apache.spark.sql.apportion.exchange

import java.util.Arrays

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.unsafe.Platform

/** Copies of rows with their shuffle partitions, in the order in which they were added. */
private[exchange] final class KeptRows {
  import KeptRows._

  private val pages = mutable.Queue.empty[Array[Byte]]
  private var partitionOf, sizeOf = new Array[Int](64)
  private var added, removed = 0
  private var first: UnsafeRow = _

  /** Position in the last page for the next row, and in the first page of the next row to remove. */
  private var end, start = 0
  private var sum = 0L

  /** Bytes of all rows that were added, and of the two numbers for each of them. */
  def bytes: Long = sum

  def isEmpty: Boolean = removed == added

  /** Partitions of the rows that were added. */
  def partitions: Array[Int] = Arrays.copyOf(partitionOf, added)

  /** Bytes of each row that was added. */
  def sizes: Array[Int] = Arrays.copyOf(sizeOf, added)

  def add(partition: Int, row: UnsafeRow): Unit = {
    val size = row.getSizeInBytes
    if (pages.isEmpty || end + size > pages.last.length) {
      pages += new Array[Byte](size.max(PageBytes))
      end = 0
    }
    row.writeToMemory(pages.last, Platform.BYTE_ARRAY_OFFSET.toLong + end)
    if (added == sizeOf.length) {
      partitionOf = Arrays.copyOf(partitionOf, 2 * added)
      sizeOf = Arrays.copyOf(sizeOf, 2 * added)
    }
    partitionOf(added) = partition
    sizeOf(added) = size
    if (first == null) first = new UnsafeRow(row.numFields)
    added += 1
    end += size
    sum += size + 8
  }

  /** Partition of the row that [[remove]] returns next. */
  def nextPartition: Int = partitionOf(removed)

  /** The first row that was not removed yet. It is valid until the next one is removed. */
  def remove(): UnsafeRow = {
    val size = sizeOf(removed)
    if (start + size > pages.head.length) {
      pages.dequeue()
      start = 0
    }
    first.pointTo(pages.head, Platform.BYTE_ARRAY_OFFSET.toLong + start, size)
    removed += 1
    start += size
    first
  }
}

private object KeptRows {
  private val PageBytes = 32 << 10
}
