package io.apportion.scans

import scala.util.Random

import org.scalacheck.Gen
import org.scalatest.funsuite.AnyFunSuite
import org.scalatestplus.scalacheck.ScalaCheckPropertyChecks

class FileSplitsSuite extends AnyFunSuite with ScalaCheckPropertyChecks {
  override implicit val generatorDrivenConfig: PropertyCheckConfiguration =
    PropertyCheckConfiguration(minSuccessful = 20000)

  private def splits(files: Seq[File]): FileSplits = {
    val (cuttable, uncut) = files.partition(_.canBeCut)
    new FileSplits(cuttable.map(_.bytes).toArray, uncut.map(_.bytes).toArray)
  }

  private def tasks(files: Seq[File], wanted: Int): Long = {
    val its = splits(files)
    its.tasks(its.sizeFor(wanted, openCost = 0), openCost = 0)
  }

  /** As Spark packs: `PartitionedFileUtil.splitFiles`, then `FilePartition.getFilePartitions`. */
  private def packed(files: Seq[File], size: Long, openCost: Long): Int = {
    val pieces = files.flatMap { file =>
      if (file.canBeCut) (0L until file.bytes by size).map(start => size.min(file.bytes - start)) else Seq(file.bytes)
    }
    var (tasks, filled, isEmpty) = (0, 0L, true)
    pieces.sorted.reverse.foreach { piece =>
      if (filled + piece > size && !isEmpty) {
        tasks += 1
        filled = 0
      }
      filled += piece + openCost
      isEmpty = false
    }
    if (isEmpty) 0 else tasks + 1
  }

  private val file = Gen.zip(Gen.choose(1L, 60L), Gen.oneOf(true, true, false)).map { case (bytes, cut) =>
    File(bytes, cut)
  }

  test("a size makes as many tasks as Spark's packing") {
    forAll(Gen.listOf(file).map(_.take(12)), Gen.choose(1L, 80L), Gen.choose(0L, 9L)) { (files, size, openCost) =>
      assert(splits(files).tasks(size, openCost) == packed(files, size, openCost))
    }
  }

  test("the search ends at a number of tasks that is near enough") {
    val random = new Random(1)
    val many = splits(Seq.fill(5000)(File(1 + (math.exp(14 + random.nextGaussian()).toLong), canBeCut = true)))
    for (wanted <- Seq(3, 40, 900, 20000)) {
      val made = many.tasks(many.sizeFor(wanted, openCost = 1L << 16, within = 0.05), openCost = 1L << 16)
      assert(math.abs(made - wanted) <= wanted * 0.05, s"$made for $wanted")
    }
  }

  test("one file that can be cut gives exactly the wanted number of tasks") {
    forAll(Gen.choose(1L, 1L << 40), Gen.choose(1, 100)) { (bytes, wanted) =>
      whenever(bytes >= wanted.toLong * wanted)(assert(tasks(Seq(File(bytes, canBeCut = true)), wanted) == wanted))
    }
  }

  test("many equal files give the wanted number of tasks, or the nearest possible one") {
    val files = Seq.fill(200)(File(128L << 20, canBeCut = true))
    assert(tasks(files, 16) == 16)
    assert(tasks(files, 200) == 200)
    assert(tasks(files, 1) == 1)
    // 67 tasks take 3 files each, 50 take 4: there is nothing between.
    assert(tasks(files, 60) == 67 || tasks(files, 60) == 50)
  }

  test("a file that cannot be cut is read by one task") {
    assert(tasks(Seq(File(1000, canBeCut = false)), 8) == 1)
    assert(tasks(Seq.fill(3)(File(1000, canBeCut = false)), 8) == 3)
  }

  test("no other size gives a number of tasks that is much nearer") {
    forAll(Gen.nonEmptyListOf(file).map(_.take(6)), Gen.choose(1, 8)) { (files, wanted) =>
      val all = splits(files)
      val best = (1L to files.map(_.bytes).sum).map(size => math.abs(all.tasks(size, openCost = 0) - wanted)).min
      assert(math.abs(tasks(files, wanted) - wanted) <= best + 1)
    }
  }
}

private final case class File(bytes: Long, canBeCut: Boolean)
