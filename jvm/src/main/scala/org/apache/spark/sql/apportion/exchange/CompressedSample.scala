package org.apache.spark.sql.apportion.exchange

import java.io.{ByteArrayOutputStream, OutputStream}

import org.apache.spark.SparkEnv
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.storage.ShuffleBlockId

/**
 * Measures how well the rows of a block can be compressed.
 *
 * @param wanted uncompressed bytes to measure, unless fewer are enough
 */
private final class CompressedSample(wanted: Long) {
  // Most samples are never complete. A compressing stream that is never closed would keep memory outside the heap.
  private val rows = new ByteArrayOutputStream

  def add(row: UnsafeRow): Unit = rows.write(row.getBytes, 0, row.getSizeInBytes)

  def isComplete: Boolean = rows.size >= wanted.min(CompressedSample.Enough)

  def ratio: Double = {
    var stored = 0L
    val counter = new OutputStream {
      override def write(byte: Int): Unit = stored += 1
      override def write(bytes: Array[Byte], offset: Int, length: Int): Unit = stored += length
    }
    // The compression depends on the kind of block, not on its numbers.
    val stream = SparkEnv.get.serializerManager.wrapForCompression(ShuffleBlockId(0, 0, 0), counter)
    rows.writeTo(stream)
    stream.close()
    rows.size.toDouble / stored.max(1)
  }
}

private object CompressedSample {

  /** Half of the bytes that LZ4, Spark's default, compresses together. */
  private val Enough = 16L << 10
}
