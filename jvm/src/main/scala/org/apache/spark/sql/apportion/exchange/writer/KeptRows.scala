package org.apache.spark.sql.apportion.exchange.writer

import java.util.Arrays

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.unsafe.Platform

/**
 * Copies of rows with their shuffle partitions, in the order in which they were added. A row above `MaxBytes` is not copied,
 * as its source may fill the memory. It is the last row, and valid as long as its source leaves it in place.
 */
private[exchange] final class KeptRows {
  import KeptRows._

  private val pages = mutable.ArrayBuffer.empty[Array[Byte]]
  private var partitionOf, sizeOf, pageOf, startOf = new Array[Int](64)
  private var added = 0
  private var row, large: UnsafeRow = _

  /** The last page, and the position in it for the next row. */
  private var page = Array.emptyByteArray
  private var end = 0
  private var sum = 0L

  /** Bytes of all rows that were added, and of the numbers for each of them. */
  def bytes: Long = sum

  def hasLarge: Boolean = large != null

  /** Number of rows that were removed. */
  var removed = 0

  /** Partition of a row by its position. */
  def partition(i: Int): Int = partitionOf(i)

  /** Partitions of the rows that were added. */
  def partitions: Array[Int] = Arrays.copyOf(partitionOf, added)

  /** Positions of the rows in ascending order of their partitions. Rows of one partition stay in their order. */
  def byPartition(numPartitions: Int): Array[Int] = {
    val ends = new Array[Int](numPartitions)
    var i = 0
    while (i < added) {
      ends(partitionOf(i)) += 1
      i += 1
    }
    for (partition <- 1 until numPartitions) ends(partition) += ends(partition - 1)
    val order = new Array[Int](added)
    while (i > 0) {
      i -= 1
      ends(partitionOf(i)) -= 1
      order(ends(partitionOf(i))) = i
    }
    order
  }

  /** Bytes of each row that was added. */
  def sizes: Array[Int] = Arrays.copyOf(sizeOf, added)

  def add(partition: Int, its: UnsafeRow): Unit = {
    val size = its.getSizeInBytes
    if (size > MaxBytes) large = its
    else {
      if (pages.isEmpty || end + size > page.length) {
        page = new Array[Byte](size.max(PageBytes))
        pages += page
        end = 0
      }
      its.writeToMemory(page, Platform.BYTE_ARRAY_OFFSET.toLong + end)
    }
    if (added == sizeOf.length) {
      partitionOf = Arrays.copyOf(partitionOf, 2 * added)
      sizeOf = Arrays.copyOf(sizeOf, 2 * added)
      pageOf = Arrays.copyOf(pageOf, 2 * added)
      startOf = Arrays.copyOf(startOf, 2 * added)
    }
    partitionOf(added) = partition
    sizeOf(added) = size
    pageOf(added) = pages.length - 1
    startOf(added) = end
    if (row == null) row = new UnsafeRow(its.numFields)
    added += 1
    end += size
    sum += size + NumberBytes
  }

  /** A row by its position. It is valid until the next call. */
  def apply(i: Int): UnsafeRow = {
    row.pointTo(pages(pageOf(i)), Platform.BYTE_ARRAY_OFFSET.toLong + startOf(i), sizeOf(i))
    row
  }

  /** The first row that was not removed yet. It is valid until the next call. */
  def remove(): UnsafeRow = {
    val page = pageOf(removed)
    if (removed > 0 && pageOf(removed - 1) < page) pages(page - 1) = null
    removed += 1
    if (hasLarge && removed == added) large else apply(removed - 1)
  }
}

private object KeptRows {

  /** Bytes of rows that a map task keeps at most. Spark's memory manager does not count them. */
  val MaxBytes: Long = 4L << 20
  private val PageBytes = 32 << 10

  /** Bytes of a row's four numbers. */
  private val NumberBytes = 16
}
