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
 * @param capacity bytes of a batch. A larger row has a batch of its own.
 */
private[exchange] final class SerializedRows(capacity: Int) {
  private var bytes = new Array[Byte](capacity)
  private var buffer = ByteBuffer.wrap(bytes)
  private var end = 0
  private var rows = 0

  def isEmpty: Boolean = rows == 0

  def add(row: UnsafeRow): Unit = {
    val size = row.getSizeInBytes
    val next = end + SerializedRows.SizeBytes + size
    if (next > bytes.length) {
      bytes = Arrays.copyOf(bytes, next)
      buffer = ByteBuffer.wrap(bytes)
    }
    buffer.putInt(end, size)
    row.writeToMemory(bytes, Platform.BYTE_ARRAY_OFFSET.toLong + end + SerializedRows.SizeBytes)
    end = next
    rows += 1
  }

  /** Whether another row of the mean size exceeds the capacity. */
  def isFull: Boolean = end + end / rows > capacity

  /** Bytes of the rows, without their sizes. */
  def rowBytes: Long = end - rows.toLong * SerializedRows.SizeBytes

  def writeTo(out: OutputStream): Unit = out.write(bytes, 0, end)

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
    if (bytes.length > 2 * capacity) {
      bytes = new Array[Byte](capacity)
      buffer = ByteBuffer.wrap(bytes)
    }
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
  private val ofRows = new UnsafeRowSerializer(numFields)

  override private[spark] def supportsRelocationOfSerializedObjects: Boolean = true

  override def newInstance(): SerializerInstance = new SerializerInstance {
    override def serializeStream(out: OutputStream): SerializationStream = new SerializedRowsStream(out, dataSize)
    override def deserializeStream(in: InputStream): DeserializationStream = ofRows.newInstance().deserializeStream(in)

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
