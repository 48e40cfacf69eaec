package org.apache.spark.sql.apportion.exchange.writer

import java.io.{ByteArrayInputStream, ByteArrayOutputStream}

import scala.collection.mutable
import scala.util.Random

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.unsafe.Platform
import org.scalatest.funsuite.AnyFunSuite

class RowBatchesSuite extends AnyFunSuite {
  private val blocks = 600

  private def row(size: Int, random: Random): UnsafeRow = {
    val bytes = new Array[Byte](size)
    random.nextBytes(bytes)
    val row = new UnsafeRow(1)
    row.pointTo(bytes, Platform.BYTE_ARRAY_OFFSET.toLong, size)
    row
  }

  /** Rows of each block, from batches that were stored and read again, and the sum of the bytes of the rows. */
  private def stored(batches: RowBatches): (Map[Int, Seq[Seq[Byte]]], Long) = {
    val bytes = new SQLMetric("size")
    val serializer = new SerializedRowsSerializer(1, bytes).newInstance()
    val outputs = mutable.Map.empty[Int, ByteArrayOutputStream]
    batches.foreach { batch =>
      val stream = serializer.serializeStream(outputs.getOrElseUpdate(batch._1, new ByteArrayOutputStream))
      stream.writeKey(batch._1).writeValue(batch._2).flush()
    }
    val rows = outputs.map { case (block, output) =>
      val stream = serializer.deserializeStream(new ByteArrayInputStream(output.toByteArray))
      block -> stream.asKeyValueIterator.map(_._2.asInstanceOf[UnsafeRow].getBytes.toSeq).toList
    }
    (rows.toMap, bytes.value)
  }

  test("Spark reads the rows of each block in their order, also if a row is larger than a batch or is empty") {
    val random = new Random(1)
    val rows = Seq.fill(5000)(8 * random.nextInt(200)).updated(7, 100000).updated(9, 0).map { size =>
      random.nextInt(blocks) -> row(size, random)
    }
    val seen = mutable.Buffer.empty[(Int, InternalRow)]
    val batches = new RowBatches(rows.iterator, blocks, (block, row) => seen += block -> row)
    val (read, bytes) = stored(batches)
    assert(read == rows.groupBy(_._1).map { case (block, its) => block -> its.map(_._2.getBytes.toSeq).toList })
    assert(bytes == rows.map(_._2.getSizeInBytes.toLong).sum)
    assert(seen == rows && batches.count == rows.size)
  }

  test("a row larger than a batch is not copied, and is written with the rows before it") {
    val random = new Random(1)
    val (small, large) = (row(24, random), row(100000, random))
    val batches = new RowBatches(Iterator(small, large, small).map(0 -> _), 1, (_, _) => ())
    val first = batches.next()._2
    assert(first.rowBytes == 100024)
    large.getBaseObject.asInstanceOf[Array[Byte]].update(99999, 7)
    val output = new ByteArrayOutputStream
    first.writeTo(output)
    assert(output.toByteArray.last == 7 && output.size == 100024 + 2 * 4)
    assert(batches.next()._2.rowBytes == 24 && !batches.hasNext)
  }

  test("a batch is cleared before the next one, whether or not the next one was asked for first") {
    val random = new Random(1)
    val rows = Seq.fill(2000)(random.nextInt(2) -> row(24, random))
    val batches = new RowBatches(rows.iterator, 2, (_, _) => ())
    var bytes = 0L
    while (bytes < 2000 * 24) bytes += batches.next()._2.rowBytes
    assert(bytes == 2000 * 24 && !batches.hasNext && !batches.hasNext)
  }

  test("there are far fewer batches than rows") {
    val random = new Random(1)
    val rows = Seq.fill(20000)(random.nextInt(4) -> row(24, random))
    assert(new RowBatches(rows.iterator, 4, (_, _) => ()).size < 100)
  }

  test("the batches of many blocks are small, so that all of them have at most 4 MiB") {
    assert(RowBatches.capacity(2) == 8192 && RowBatches.capacity(8192) == 512)
  }
}
