package io.apportion.decision

import io.apportion.Vectors
import io.apportion.Vectors._
import io.apportion.decision.ranges.{PowersOfTwo, Ranges}
import com.fasterxml.jackson.databind.JsonNode
import org.scalatest.funsuite.AnyFunSuite

/** The decision against Flink's, but where Flink overflows 32-bit integers or divides by zero. */
class VectorsSuite extends AnyFunSuite {

  for ((vector, line) <- Vectors.read("normalize.jsonl").zipWithIndex)
    test(s"normalize.jsonl ${line + 1}: $vector") {
      val x = vector.long("x")
      assert(PowersOfTwo.down(x) == vector.long("roundDown"))
      if (x <= (1L << 30)) {
        assert(PowersOfTwo.up(x) == vector.long("roundUp"))
        assert(PowersOfTwo.nearest(x) == vector.long("normalized"))
      } else {
        // Flink's int overflows to -2^31 here.
        assert(PowersOfTwo.up(x) == (1L << 31))
        assert(PowersOfTwo.nearest(x) == (1L << 31))
      }
    }

  for ((vector, line) <- Vectors.read("decide.jsonl").zipWithIndex)
    test(s"decide.jsonl ${line + 1}: $vector") {
      // A volume of 0 divides by zero in Flink, and it takes the minimum.
      if (vector.has("error") || vector.long("v") < 1) assertThrows[IllegalArgumentException](policy(vector))
      else {
        val limits = policy(vector)
        val decision = Decider.decide(inputs(vector), limits)
        val expected = expectedParallelism(vector, decision)
        assert(limits.lowerBound == vector.int("normalizedMin"))
        assert(limits.upperBound == vector.int("normalizedMax"))
        if (vector.items("inputs").nonEmpty)
          assert(decision.rounded.max(limits.lowerBound.toLong).min(limits.upperBound.toLong) == expected)
        assert(
          decision.parallelism == (if (decision.subpartitions > 0) expected.min(decision.subpartitions) else expected)
        )
      }
    }

  for ((vector, line) <- Vectors.read("ranges.jsonl").zipWithIndex)
    test(s"ranges.jsonl ${line + 1}: $vector") {
      val (subpartitions, parallelism) = (vector.int("p"), vector.int("n"))
      if (parallelism > subpartitions)
        assertThrows[IllegalArgumentException](Ranges.even(subpartitions, parallelism))
      else if (vector.has("ranges"))
        assert(
          Ranges.even(subpartitions, parallelism).toSeq ==
            vector.items("ranges").map(range => (range.get(0).asInt, range.get(1).asInt + 1))
        )
      else {
        val k = vector.int("k")
        val ranges = Ranges.even(subpartitions, parallelism).toSeq
        if (vector.has("error") && k >= parallelism) assert(!ranges.isDefinedAt(k))
        else checkRange(vector, ranges(k))
      }
    }

  private def checkRange(vector: JsonNode, range: (Int, Int)): Unit = {
    val (k, subpartitions, parallelism) = (vector.long("k"), vector.int("p"), vector.int("n"))
    val (start, end) = range
    assert(start == k * subpartitions / parallelism)
    assert(end == (k + 1) * subpartitions / parallelism)
    // Flink's int overflows from (k + 1) * p = 2^31 on.
    if ((k + 1) * subpartitions <= Int.MaxValue) assert((start, end - 1) == ((vector.int("start"), vector.int("end"))))
  }

  private def policy(vector: JsonNode): Policy = Policy(
    dataVolumePerTask = vector.long("v"),
    minParallelism = vector.int("min"),
    maxParallelism = vector.int("max"),
    sourceParallelism = vector.int("defaultSource")
  )

  /** The vectors have bytes per upstream partition; here all of them lie in the first of as many subpartitions as can be tasks. */
  private def inputs(vector: JsonNode): Seq[Input] = vector.items("inputs").map { input =>
    val bytes = new Array[Long](vector.int("normalizedMax").min(1 << 16))
    bytes(0) = input.items("partitionBytes").map(_.asLong).sum
    new Input(bytes, input.get("broadcast").asBoolean)
  }

  private def expectedParallelism(vector: JsonNode, decision: Decision): Int =
    // Flink's int overflows, and it takes the minimum.
    if (decision.raw > (1L << 30)) vector.int("normalizedMax")
    // Flink lets broadcasts take up the whole volume, divides by zero and takes the minimum.
    else if (vector.long("v") == 1 && decision.broadcastBytes > 0)
      nearestPower(decision.inputBytes).max(vector.int("normalizedMin")).min(vector.int("normalizedMax"))
    else vector.int("parallelism")

  private def nearestPower(x: Long): Int = (0 to 30).map(1 << _).minBy(power => (math.abs(power - x), -power))
}
