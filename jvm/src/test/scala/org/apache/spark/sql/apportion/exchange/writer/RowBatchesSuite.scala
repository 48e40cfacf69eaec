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
  private val partitions = 600

  private def row(size: Int, random: Random): UnsafeRow = {
    val bytes = new Array[Byte](size)
    random.nextBytes(bytes)
    val row = new UnsafeRow(1)
    row.pointTo(bytes, Platform.BYTE_ARRAY_OFFSET.toLong, size)
    row
  }

  /** Batches of rows that all go to the block with the number of their partition. */
  private def batchesOf(
      rows: Seq[(Int, UnsafeRow)],
      partitions: Int,
      onRow: (Int, InternalRow) => Unit = (_, _) => ()
  ): RowBatches = batchesOfBlocks(rows.map { case (partition, row) => (partition, partition, row) }, partitions, onRow)

  /** @param rows partition and block of each row, and the row */
  private def batchesOfBlocks(
      rows: Seq[(Int, Int, UnsafeRow)],
      partitions: Int,
      onRow: (Int, InternalRow) => Unit = (_, _) => ()
  ): RowBatches = {
    var last = -1
    val placed = rows.iterator.map { case (partition, block, row) =>
      last = partition
      block -> row
    }
    new RowBatches(placed, partitions, () => last, onRow)
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
      random.nextInt(partitions) -> row(size, random)
    }
    val seen = mutable.Buffer.empty[(Int, InternalRow)]
    val batches = batchesOf(rows, partitions, (block, row) => seen += block -> row)
    val (read, bytes) = stored(batches)
    assert(read == rows.groupBy(_._1).map { case (block, its) => block -> its.map(_._2.getBytes.toSeq).toList })
    assert(bytes == rows.map(_._2.getSizeInBytes.toLong).sum)
    assert(seen == rows && batches.count == rows.size)
  }

  test("a row larger than a batch is not copied, and is written with the rows before it") {
    val random = new Random(1)
    val (small, large) = (row(24, random), row(100000, random))
    val batches = batchesOf(Seq(small, large, small).map(0 -> _), 1)
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
    val batches = batchesOf(rows, 2)
    var bytes = 0L
    while (bytes < 2000 * 24) bytes += batches.next()._2.rowBytes
    assert(bytes == 2000 * 24 && !batches.hasNext && !batches.hasNext)
  }

  test("there are far fewer batches than rows") {
    val random = new Random(1)
    val rows = Seq.fill(20000)(random.nextInt(4) -> row(24, random))
    assert(batchesOf(rows, 4).size < 100)
  }

  test("rows of a block lie side by side by their partitions") {
    val random = new Random(1)
    val rows = Seq.tabulate(1000)(i => (i % 4, 0, row(24, random)))
    val (read, _) = stored(batchesOfBlocks(rows, 4))
    assert(read(0) == rows.sortBy(_._1).map(_._3.getBytes.toSeq))
  }

  test("the rows of a partition whose block changes are in the block that each of them was placed in") {
    val random = new Random(1)
    val sizes = Seq.fill(3000)(8 * random.nextInt(200)).updated(1000, 100000).updated(2000, 100000)
    val rows = sizes.zipWithIndex.map { case (size, i) => (random.nextInt(4), i / 500, row(size, random)) }
    val seen = mutable.Buffer.empty[Int]
    val batches = batchesOfBlocks(rows, 4, (block, _) => seen += block)
    val (read, _) = stored(batches)
    for ((block, its) <- rows.groupBy(_._2))
      assert(read(block).groupBy(identity) == its.map(_._3.getBytes.toSeq).groupBy(identity))
    assert(seen == rows.map(_._2) && batches.count == rows.size)
  }

  test("the batches of many partitions are small, so that all of them have at most 4 MiB") {
    assert(RowBatches.capacity(2) == 8192 && RowBatches.capacity(8192) == 512)
  }
}
