package io.apportion.decision

import org.scalacheck.Gen
import org.scalatest.funsuite.AnyFunSuite
import org.scalatestplus.scalacheck.ScalaCheckPropertyChecks

class SubpartitionFormulaProperties extends AnyFunSuite with ScalaCheckPropertyChecks {
  private val bytes = Gen.choose(0, 50).flatMap(bits => Gen.choose(0L, 1L << bits))
  private val intervals = for (one <- bytes; other <- bytes) yield ByteInterval(one.min(other), one.max(other))
  private val cases = for {
    interval <- intervals
    partitions <- Gen.choose(1, 5000)
    bits <- Gen.choose(16, 30)
    slots <- Gen.option(Gen.choose(1, 500))
    rows <- Gen.choose(0.0, 1e7)
  } yield (interval, rows, ShuffleDefaults(partitions), Policy(dataVolumePerTask = 1L << bits, slots = slots))

  test("the number suffices for the upper end of the bytes, or it is at least Spark's number") {
    forAll(cases, minSuccessful(1000)) { case (interval, rows, defaults, policy) =>
      val n = SubpartitionFormula.of(interval, mapTasks = 1, defaults, policy, rows = rows)
      val needed = (interval.high - 1) / policy.dataVolumePerTask + 1
      assert(n >= needed.min(defaults.partitions.toLong))
    }
  }

  test("an interval that is raised or loses its upper end never gets fewer partitions") {
    forAll(cases, minSuccessful(1000)) { case (interval, rows, defaults, policy) =>
      def n(of: ByteInterval) = SubpartitionFormula.of(of, mapTasks = 1, defaults, policy, rows = rows)
      assert(n(interval.unbounded) >= n(interval))
      assert(n(interval.raisedTo(interval.high)) >= n(interval))
    }
  }
}
