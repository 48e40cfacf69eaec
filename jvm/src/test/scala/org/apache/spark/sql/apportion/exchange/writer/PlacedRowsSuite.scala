package org.apache.spark.sql.apportion.exchange.writer

import io.apportion.decision.ranges.{BlockChooser, PartitionTree}
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.unsafe.Platform
import org.scalatest.funsuite.AnyFunSuite

class PlacedRowsSuite extends AnyFunSuite {

  /** Rows of 1 KiB, which fill all blocks in turn. */
  private def placed(rows: Int, blocks: Int, likelyBytes: Long = 0): PlacedRows = {
    val bytes = new Array[Byte](1 << 10)
    val row = new UnsafeRow(1)
    row.pointTo(bytes, Platform.BYTE_ARRAY_OFFSET.toLong, bytes.length)
    var next = -1
    new PlacedRows(
      Iterator.fill(rows)(row),
      _ => {
        next += 1
        next % blocks
      },
      new BlockChooser(PartitionTree(blocks), first = 0, shares = Array.empty, rowShare = Long.MaxValue),
      likelyBytes,
      new SQLMetric("sum")
    )
  }

  test("a map task with more rows than it keeps fills files if it has few blocks, or likely far more rows") {
    assert(placed(rows = 5000, blocks = 16).fillsFiles)
    assert(!placed(rows = 5000, blocks = 256).fillsFiles)
    assert(placed(rows = 5000, blocks = 256, likelyBytes = 100 << 20).fillsFiles)
  }

  test("a map task that keeps all of its rows fills no files") {
    assert(!placed(rows = 1000, blocks = 1).fillsFiles)
  }
}
