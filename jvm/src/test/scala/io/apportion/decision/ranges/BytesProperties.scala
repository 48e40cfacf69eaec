package io.apportion.decision.ranges

import org.scalacheck.{Gen, Properties}
import org.scalacheck.Prop.forAll

object BytesProperties extends Properties("Bytes") {
  private val anyCounts = Gen.listOf(Gen.oneOf(Gen.choose(0L, 1000L), Gen.choose(0L, Long.MaxValue)))

  property("a sum is exact and saturates at 2^63 - 1") = forAll(anyCounts) { counts =>
    BigInt(Bytes.sum(counts.toArray)) == counts.map(BigInt(_)).sum.min(Long.MaxValue)
  }

  property("sums of parts are exact and saturate at 2^63 - 1") =
    forAll(anyCounts, Gen.listOf(Gen.zip(Gen.choose(0, 20), Gen.choose(0, 20)))) { (counts, parts) =>
      val (starts, ends) = parts.map { case (start, length) => (start, start + length) }.unzip
      Bytes.sums(counts.toArray, starts.toArray, ends.toArray).map(BigInt(_)).toSeq ==
        starts.zip(ends).map { case (start, end) =>
          counts.slice(start, end).map(BigInt(_)).sum.min(Long.MaxValue)
        }
    }
}
