package io.apportion.sources

import io.apportion.sources.FileSplits.File
import org.scalacheck.Gen
import org.scalatest.funsuite.AnyFunSuite
import org.scalatestplus.scalacheck.ScalaCheckPropertyChecks

class FileSplitsSuite extends AnyFunSuite with ScalaCheckPropertyChecks {
  override implicit val generatorDrivenConfig: PropertyCheckConfiguration =
    PropertyCheckConfiguration(minSuccessful = 20000)

  private def tasks(files: Seq[File], wanted: Int): Long = {
    val splits = new FileSplits(files, openCost = 0)
    splits.tasks(splits.sizeFor(wanted))
  }

  test("one file that can be cut gives exactly what is wanted") {
    forAll(Gen.choose(1L, 1L << 40), Gen.choose(1, 100)) { (bytes, wanted) =>
      whenever(bytes >= wanted.toLong * wanted)(assert(tasks(Seq(File(bytes, canBeCut = true)), wanted) == wanted))
    }
  }

  test("many equal files that are not cut give as many as can be") {
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

  test("no other size comes nearer") {
    val file = Gen.zip(Gen.choose(1L, 60L), Gen.oneOf(true, true, false)).map { case (bytes, cut) => File(bytes, cut) }
    forAll(Gen.nonEmptyListOf(file).map(_.take(6)), Gen.choose(1, 8)) { (files, wanted) =>
      val best = (1L to files.map(_.bytes).sum)
        .map(size => math.abs(new FileSplits(files, openCost = 0).tasks(size) - wanted))
        .min
      assert(math.abs(tasks(files, wanted) - wanted) <= best + 1)
    }
  }
}
