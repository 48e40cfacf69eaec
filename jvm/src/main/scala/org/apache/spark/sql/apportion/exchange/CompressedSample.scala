package org.apache.spark.sql.apportion.exchange

import java.io.OutputStream

import org.apache.spark.SparkEnv
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.storage.ShuffleBlockId
import org.apache.spark.unsafe.Platform

/**
 * Measures how well the rows of a block can be compressed.
 *
 * @param wanted uncompressed bytes to measure, unless fewer are enough
 */
private final class CompressedSample(wanted: Long) {
  // Most samples are never complete. A compressing stream that is never closed would keep memory outside the heap.
  private val rows = new Array[Byte](wanted.min(CompressedSample.Enough).toInt)
  private var size = 0

  /** Adds a row, or as much of it as the sample needs. */
  def add(row: UnsafeRow): Unit = {
    val added = row.getSizeInBytes.min(rows.length - size)
    Platform.copyMemory(
      row.getBaseObject,
      row.getBaseOffset,
      rows,
      Platform.BYTE_ARRAY_OFFSET.toLong + size,
      added.toLong
    )
    size += added
  }

  def isComplete: Boolean = size == rows.length

  def ratio: Double = {
    var stored = 0L
    val counter = new OutputStream {
      override def write(byte: Int): Unit = stored += 1
      override def write(bytes: Array[Byte], offset: Int, length: Int): Unit = stored += length
    }
    // The compression depends on the kind of block, not on its numbers.
    val stream = SparkEnv.get.serializerManager.wrapForCompression(ShuffleBlockId(0, 0, 0), counter)
    stream.write(rows, 0, size)
    stream.close()
    size.toDouble / stored.max(1)
  }
}

private object CompressedSample {

  /** Half of the bytes that LZ4, Spark's default, compresses together. */
  private val Enough = 16L << 10
}
