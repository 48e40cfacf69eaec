package org.apache.spark.sql.apportion.exchange.writer

import java.io.{InputStream, OutputStream}
import java.nio.ByteBuffer
import java.util.Arrays

import scala.reflect.ClassTag

import org.apache.spark.SparkEnv
import org.apache.spark.serializer.{DeserializationStream, SerializationStream, Serializer, SerializerInstance}
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.UnsafeRowSerializer
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.storage.ShuffleBlockId
import org.apache.spark.unsafe.Platform

/**
 * Rows of a block in the form in which `UnsafeRowSerializer` stores them: the size of each row, then the row. Spark's writers
 * take such a batch like one row. A row then passes through none of the five streams that each block has.
 *
 * @param capacity bytes of a batch. A larger row is not copied, and ends the batch: it is valid as long as its source
 *                 leaves it in place.
 */
private[exchange] final class SerializedRows(capacity: Int) {
  private var bytes = new Array[Byte](capacity)
  private var end = 0
  private var rows = 0
  private var large: UnsafeRow = _

  def isEmpty: Boolean = rows == 0

  def add(row: UnsafeRow): Unit = {
    val size = row.getSizeInBytes
    val start = end + SerializedRows.SizeBytes
    val next = if (size > capacity) start else start + size
    if (next > bytes.length) bytes = Arrays.copyOf(bytes, next)
    ByteBuffer.wrap(bytes).putInt(end, size)
    if (size > capacity) large = row else row.writeToMemory(bytes, Platform.BYTE_ARRAY_OFFSET.toLong + start)
    end = next
    rows += 1
  }

  /** Whether another row of the mean size exceeds the capacity. */
  def isFull: Boolean = large != null || end + end / rows > capacity

  /** Bytes of the rows, without their sizes. */
  def rowBytes: Long =
    end - rows.toLong * SerializedRows.SizeBytes + (if (large == null) 0 else large.getSizeInBytes)

  def writeTo(out: OutputStream): Unit = {
    out.write(bytes, 0, end)
    // The buffer is for rows outside the heap.
    if (large != null) large.writeToStream(out, new Array[Byte](capacity))
  }

  /** Ratio of the bytes of the rows to the bytes that they are stored in. */
  def compressionRatio: Double = {
    var stored = 0L
    val counter = new OutputStream {
      override def write(byte: Int): Unit = stored += 1
      override def write(bytes: Array[Byte], offset: Int, length: Int): Unit = stored += length
    }
    // The compression depends on the kind of block, not on its numbers.
    val stream = SparkEnv.get.serializerManager.wrapForCompression(ShuffleBlockId(0, 0, 0), counter)
    writeTo(stream)
    stream.close()
    rowBytes.toDouble / stored.max(1)
  }

  def clear(): Unit = {
    end = 0
    rows = 0
    large = null
  }
}

private[exchange] object SerializedRows {
  private val SizeBytes = 4
}

/**
 * Serializer of a shuffle whose map tasks write [[SerializedRows]], and whose other tasks read rows.
 *
 * @param dataSize metric of the bytes of all rows
 */
private[exchange] final class SerializedRowsSerializer(numFields: Int, dataSize: SQLMetric)
    extends Serializer
    with Serializable {
  override private[spark] def supportsRelocationOfSerializedObjects: Boolean = true

  override def newInstance(): SerializerInstance = new SerializerInstance {
    override def serializeStream(out: OutputStream): SerializationStream = new SerializedRowsStream(out, dataSize)
    override def deserializeStream(in: InputStream): DeserializationStream =
      new UnsafeRowSerializer(numFields).newInstance().deserializeStream(in)

    // As in UnsafeRowSerializer, a shuffle calls none of these.
    override def serialize[T: ClassTag](value: T): ByteBuffer = throw new UnsupportedOperationException
    override def deserialize[T: ClassTag](bytes: ByteBuffer): T = throw new UnsupportedOperationException
    override def deserialize[T: ClassTag](bytes: ByteBuffer, loader: ClassLoader): T =
      throw new UnsupportedOperationException
  }
}

private final class SerializedRowsStream(out: OutputStream, dataSize: SQLMetric) extends SerializationStream {
  override def writeKey[T: ClassTag](key: T): SerializationStream = this

  override def writeValue[T: ClassTag](value: T): SerializationStream = {
    val rows = value.asInstanceOf[SerializedRows]
    rows.writeTo(out)
    dataSize.add(rows.rowBytes)
    this
  }

  override def writeObject[T: ClassTag](value: T): SerializationStream = throw new UnsupportedOperationException
  override def flush(): Unit = out.flush()
  override def close(): Unit = out.close()
}
