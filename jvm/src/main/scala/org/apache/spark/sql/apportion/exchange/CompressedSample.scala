package org.apache.spark.sql.apportion.exchange

import java.io.OutputStream

import org.apache.spark.SparkEnv
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.storage.ShuffleBlockId

/**
 * Measures how well the rows of a block can be compressed.
 *
 * @param wanted uncompressed bytes to measure, unless fewer are enough
 */
private final class CompressedSample(wanted: Long) {
  private var stored, uncompressed = 0L
  private val counter = new OutputStream {
    override def write(byte: Int): Unit = stored += 1
    override def write(bytes: Array[Byte], offset: Int, length: Int): Unit = stored += length
  }
  // The compression depends on the kind of block, not on its numbers.
  private val stream = SparkEnv.get.serializerManager.wrapForCompression(ShuffleBlockId(0, 0, 0), counter)
  private val buffer = new Array[Byte](1 << 12)

  def add(row: UnsafeRow): Unit = {
    row.writeToStream(stream, buffer)
    uncompressed += row.getSizeInBytes
    if (isComplete) stream.close()
  }

  def isComplete: Boolean = uncompressed >= wanted.min(CompressedSample.Enough)

  def ratio: Double = uncompressed.toDouble / stored.max(1)
}

private object CompressedSample {

  /** Half of the bytes that LZ4, Spark's default, compresses together. */
  private val Enough = 16L << 10
}
