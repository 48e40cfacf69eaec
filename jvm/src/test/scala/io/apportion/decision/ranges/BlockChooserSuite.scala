package io.apportion.decision.ranges

import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

class BlockChooserSuite extends AnyFunSuite {
  private val tree = PartitionTree(2, 4, 8)

  /** A chooser that divides groups at a limit if all rows are known: at a quarter of a task's bytes. */
  private def chooser(limit: Long, rowLimit: Long = Long.MaxValue / 4, first: Int = 0) =
    new BlockChooser(tree, first, Array.fill(3)(4 * limit), 4 * rowLimit)

  test("a group is divided before it has more bytes than the limit, and other groups are not") {
    val blocks = chooser(100)
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
    val chosen = blocks.place(rows.map(_._1).toArray, rows.map(_._2).toArray, isAll = true)
    assert(chosen.toSeq == Seq.fill(6)(tree.blockOf(2, 0)) :+ tree.blockOf(0, 7))
    assert(blocks.written == 2)
  }

  test("groups are divided earlier if more rows follow than are known") {
    val rows = Seq.fill(6)(0 -> 16)
    val blocks = chooser(100)
    def placed(isAll: Boolean) = blocks.place(rows.map(_._1).toArray, rows.map(_._2).toArray, isAll).toSeq
    assert(placed(isAll = true).forall(_ == tree.blockOf(0, 0)))
    assert(placed(isAll = false).forall(_ == tree.blockOf(2, 0)))
  }

  test(
    "a group without room for as many rows again as are known is divided before its first row, if more rows follow"
  ) {
    def placed(rowBytes: Int, isAll: Boolean) =
      chooser(100, first = 1).place(Array(0, 7), Array(rowBytes, rowBytes), isAll).toSeq
    assert(placed(60, isAll = false) == Seq(tree.blockOf(2, 0), tree.blockOf(2, 7)))
    assert(placed(50, isAll = false) == Seq(tree.blockOf(1, 0), tree.blockOf(1, 7)))
    assert(placed(60, isAll = true) == Seq(tree.blockOf(0, 0), tree.blockOf(0, 7)))
  }

  test("if the first rows are of one partition, the rows of the others are still written into few blocks") {
    val wide = TreeLevels.tree(8192, likely = 2)
    val blocks = new BlockChooser(wide, first = 0, wide.groups.map(_ => 4L << 20), rowShare = Long.MaxValue)
    val random = new Random(1)
    blocks.place(Array.fill(4096)(3), Array.fill(4096)(1024), isAll = false)
    (0 until 16384).foreach(_ => blocks.choose(random.nextInt(8192), 1024))
    // A map task of 20 MiB; with a block for each partition, there would be 7,000.
    assert(blocks.written < 200)
  }

  test("few and large partitions have blocks of their own, and small or most partitions have not") {
    def levels(partitions: Int, rowBytes: Int, isAll: Boolean) = {
      val rows = Array.range(0, partitions)
      chooser(1L << 40).place(rows, rows.map(_ => rowBytes), isAll).map(tree.level(_)).toSet
    }
    for (isAll <- Seq(true, false)) {
      assert(levels(4, 32 << 10, isAll) == Set(2))
      assert(levels(4, 16 << 10, isAll) == Set(0))
      assert(levels(5, 32 << 10, isAll) == Set(0))
    }
  }

  test("a map task starts with finer groups only if it has more rows than it keeps") {
    def placed(isAll: Boolean) = chooser(100, first = 1).place(Array(0, 7), Array(40, 20), isAll).toSeq
    assert(placed(isAll = true) == Seq(tree.blockOf(0, 0), tree.blockOf(0, 7)))
    assert(placed(isAll = false) == Seq(tree.blockOf(1, 0), tree.blockOf(1, 7)))
  }

  test("the levels above the first level that is measured have its ratio") {
    val blocks = chooser(100, first = 1)
    blocks.setRatio(blocks.choose(0, 60), 2)
    assert(blocks.place(Array(0), Array(200), isAll = true).toSeq == Seq(tree.blockOf(0, 0)))
  }

  test("a group of the last level is never divided") {
    val blocks = chooser(10)
    assert(Seq.fill(5)(blocks.choose(3, 8)).takeRight(2) == Seq.fill(2)(tree.blockOf(2, 3)))
  }

  test("one block of each level is measured, until its ratio of uncompressed to stored bytes is set") {
    val blocks = chooser(100)
    val top = blocks.choose(0, 60)
    assert(blocks.needsRatio(top) && !blocks.needsRatio(blocks.choose(7, 60)))
    assert(blocks.bytesToMeasure(top) == 100)
    blocks.setRatio(top, 1)
    val divided = blocks.choose(0, 60)
    assert(divided == tree.blockOf(1, 0) && blocks.needsRatio(divided) && !blocks.needsRatio(top))
  }

  test("a group may have as many uncompressed bytes as are stored as its limit") {
    val blocks = chooser(100)
    blocks.setRatio(tree.blockOf(0, 0), 4)
    // 400 uncompressed bytes are 100 stored ones.
    assert(Seq.fill(7)(blocks.choose(0, 60)) == Seq.fill(6)(tree.blockOf(0, 0)) :+ tree.blockOf(1, 0))
  }

  test("until the ratio of a level is measured, it is that of the level above") {
    val blocks = chooser(100)
    blocks.setRatio(tree.blockOf(0, 0), 4)
    blocks.choose(0, 400)
    assert(Seq.fill(2)(blocks.choose(0, 200)) == Seq.fill(2)(tree.blockOf(1, 0)))
    blocks.setRatio(tree.blockOf(1, 0), 2)
    assert(blocks.choose(0, 1) == tree.blockOf(2, 0))
  }

  test("the first rows start again at the first level, with the ratio that they turned out to have") {
    val rows = Seq.fill(7)(0 -> 40)
    val blocks = chooser(100)
    rows.foreach { case (partition, bytes) => blocks.choose(partition, bytes) }
    blocks.setRatio(tree.blockOf(0, 0), 3)
    val chosen = blocks.place(rows.map(_._1).toArray, rows.map(_._2).toArray, isAll = true)
    assert(chosen.forall(_ == tree.blockOf(0, 0)))
  }

  test("the limit of uncompressed bytes does not depend on the ratio") {
    val blocks = chooser(1000, rowLimit = 100)
    blocks.setRatio(tree.blockOf(0, 0), 8)
    assert(Seq.fill(2)(blocks.choose(0, 60)).last == tree.blockOf(1, 0))
  }

  test("a first group may have as much of a task's memory as its parts if more rows follow") {
    val blocks = chooser(Long.MaxValue / 4, rowLimit = 100)
    blocks.place(Array(0), Array(24), isAll = false)
    // Half of the limit for each of the two levels.
    assert(Seq.fill(2)(blocks.choose(0, 24)) == Seq(tree.blockOf(0, 0), tree.blockOf(1, 0)))
  }

  test("parts have the share of their groups if no row was written before these were divided") {
    val blocks = chooser(100)
    blocks.place(Array(0, 7), Array(40, 40), isAll = false)
    assert(Seq.fill(2)(blocks.choose(0, 30)) == Seq.fill(2)(tree.blockOf(1, 0)))
    assert(blocks.choose(0, 1) == tree.blockOf(2, 0))
  }

  test("a tree whose levels do not divide each other is refused with its levels") {
    val message = intercept[IllegalArgumentException](PartitionTree(4, 6)).getMessage
    assert(message.contains("4, 6") && message.contains("multiple"))
  }
}
