package io.apportion.decision.ranges

import org.scalatest.funsuite.AnyFunSuite

class BlockChooserSuite extends AnyFunSuite {
  private val tree = PartitionTree(2, 4, 8)

  private def chooser(limit: Long, rowLimit: Long = Long.MaxValue) =
    new BlockChooser(tree, 0, Array.fill(3)(limit), Array.fill(3)(rowLimit))

  test("a group is divided before it has more bytes than the limit, and other groups are not") {
    val blocks = chooser(100)
    blocks.setRatio(1)
    assert(Seq.fill(2)(blocks.choose(0, 60)) == Seq(tree.blockOf(0, 0), tree.blockOf(1, 0)))
    assert(blocks.choose(7, 60) == tree.blockOf(0, 7))
    assert(blocks.written == 3)
  }

  test("a row above the limit has a partition of its own") {
    val blocks = chooser(100)
    assert(blocks.choose(5, 101) == tree.blockOf(2, 5))
  }

  test("the first rows are written as finely as the last of them") {
    val rows = Seq.fill(6)(0 -> 40) :+ (7 -> 40)
    val blocks = chooser(100)
    blocks.setRatio(1)
    blocks.startAgain(rows.map(_._1).toArray, rows.map(_._2).toArray)
    assert(blocks.written == 0)
    val chosen = rows.map { case (partition, bytes) => blocks.choose(partition, bytes) }
    assert(chosen == Seq.fill(6)(tree.blockOf(2, 0)) :+ tree.blockOf(0, 7))
  }

  test("a group of the last level is never divided") {
    val blocks = chooser(10)
    blocks.setRatio(1)
    assert(Seq.fill(5)(blocks.choose(3, 8)).takeRight(2) == Seq.fill(2)(tree.blockOf(2, 3)))
  }

  test("the ratio of uncompressed to stored bytes is needed once a group has half of its limit") {
    val blocks = chooser(100)
    blocks.choose(0, 40)
    assert(!blocks.needsRatio)
    blocks.choose(0, 20)
    assert(blocks.needsRatio)
    blocks.setRatio(4)
    // 400 uncompressed bytes are 100 stored ones.
    assert(
      Seq.fill(6)(blocks.choose(0, 60)).distinct == Seq(tree.blockOf(0, 0), tree.blockOf(1, 0)) && !blocks.needsRatio
    )
  }

  test("without the ratio, groups are divided as if rows could not be compressed") {
    val blocks = chooser(100)
    assert(Seq.fill(2)(blocks.choose(0, 60)).last == tree.blockOf(1, 0) && blocks.needsRatio)
  }

  test("the limit of uncompressed bytes does not depend on the ratio") {
    val blocks = chooser(1000, rowLimit = 100)
    blocks.setRatio(8)
    assert(Seq.fill(2)(blocks.choose(0, 60)).last == tree.blockOf(1, 0))
  }

  test("a tree whose levels do not divide each other is refused with its levels") {
    val message = intercept[IllegalArgumentException](PartitionTree(4, 6)).getMessage
    assert(message.contains("4, 6") && message.contains("multiple"))
  }
}
