package org.apache.spark.sql.apportion.exchange.writer

import scala.util.Random

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.unsafe.Platform
import org.scalatest.funsuite.AnyFunSuite

class KeptRowsSuite extends AnyFunSuite {

  private def row(bytes: Array[Byte]): UnsafeRow = {
    val row = new UnsafeRow(1)
    row.pointTo(bytes, Platform.BYTE_ARRAY_OFFSET.toLong, bytes.length)
    row
  }

  test("rows are found by their position and leave as they came, also if a row is larger than a page") {
    val random = new Random(1)
    val rows = Seq.fill(2000)(8 * random.nextInt(200)).updated(700, 100000).map { size =>
      val bytes = new Array[Byte](size)
      random.nextBytes(bytes)
      bytes
    }
    val kept = new KeptRows
    rows.zipWithIndex.foreach { case (bytes, partition) => kept.add(partition, row(bytes)) }
    assert(kept.partitions.toSeq == rows.indices && kept.sizes.toSeq == rows.map(_.length))
    assert(rows.indices.reverse.forall(i => kept(i).getBytes.sameElements(rows(i))))
    rows.zipWithIndex.foreach { case (bytes, i) =>
      assert(kept.removed == i && kept.remove().getBytes.sameElements(bytes))
    }
  }

  test("rows are found by their partition, in the order in which they came") {
    val kept = new KeptRows
    Seq(2, 0, 3, 2, 0).foreach(kept.add(_, row(new Array[Byte](8))))
    assert(kept.byPartition(5).toSeq == Seq(1, 4, 0, 3, 2))
  }

  test("a row of more bytes than all rows may have is not copied, and leaves last") {
    val (small, large) = (new Array[Byte](8), new Array[Byte](5 << 20))
    val kept = new KeptRows
    kept.add(0, row(small))
    assert(!kept.hasLarge)
    kept.add(1, row(large))
    assert(kept.hasLarge && kept.bytes > KeptRows.MaxBytes)
    assert(kept.remove().getBytes.sameElements(small) && (kept.remove().getBaseObject eq large))
  }

  test("rows without bytes count, so that their number has a limit") {
    val kept = new KeptRows
    Seq.fill(10)(row(Array.empty)).foreach(kept.add(0, _))
    assert(kept.bytes == 160)
  }
}
