package io.apportion.decision.ranges

import scala.jdk.CollectionConverters._

import io.apportion.Vectors
import io.apportion.Vectors._
import io.apportion.decision.{Decider, Input, Policy, SourceKind, ValueSource}
import com.fasterxml.jackson.databind.JsonNode
import org.scalacheck.Gen
import org.scalatest.funsuite.AnyFunSuite
import org.scalatestplus.scalacheck.ScalaCheckPropertyChecks

/** Ranges with the least largest: against all ways to cut, and against Flink, which bisects and packs. */
class BalancedRangesSuite extends AnyFunSuite with ScalaCheckPropertyChecks {
  private def largest(ranges: Ranges, bytes: Array[Long]): Long = ranges.bytesOf(bytes).maxOption.getOrElse(0L)

  /** By trying every way to cut. */
  private def least(bytes: Seq[Long], parallelism: Int): Long =
    if (parallelism == 1) bytes.sum
    else (0 to bytes.size).map(n => bytes.take(n).sum.max(least(bytes.drop(n), parallelism - 1))).min

  private val sizes = Gen.listOf(Gen.oneOf(Gen.const(0L), Gen.choose(0L, 9L), Gen.choose(0L, 1000L))).map(_.take(9))

  test("no other ranges have a smaller largest range") {
    forAll(sizes, Gen.choose(1, 4)) { (sizes, parallelism) =>
      val ranges = Ranges.balanced(sizes.toArray, parallelism)
      assert(ranges.size <= parallelism)
      assert(largest(ranges, sizes.toArray) == least(sizes, parallelism))
    }
  }

  test("balanced ranges are contiguous and cover every shuffle partition once") {
    forAll(Gen.listOf(Gen.choose(0L, Long.MaxValue)), Gen.choose(1, 40)) { (sizes, parallelism) =>
      val ranges = Ranges.balanced(sizes.toArray, parallelism).toSeq
      assert(ranges.map(_._1) == 0 +: ranges.map(_._2).init)
      assert(ranges.last._2 == sizes.size)
      assert(ranges.forall { case (start, end) => start < end } || sizes.isEmpty)
    }
  }

  test("the largest balanced range is never larger than the largest even range") {
    forAll(Gen.nonEmptyListOf(Gen.choose(0L, 1L << 40)), Gen.choose(1, 64)) { (sizes, parallelism) =>
      val (bytes, tasks) = (sizes.toArray, parallelism.min(sizes.size))
      assert(largest(Ranges.balanced(bytes, tasks), bytes) <= largest(Ranges.even(bytes.length, tasks), bytes))
    }
  }

  for (
    (vector, line) <- Vectors.read("balanced.jsonl").zipWithIndex if vector.has("tasks") && shuffles(vector).nonEmpty
  )
    test(s"balanced.jsonl ${line + 1}: the largest range is no larger than Flink's") {
      val flink = flinkTasks(vector)
      val bytes = shuffles(vector).map { case (input, _) => bySubpartition(input) }.transpose.map(_.sum).toArray
      assert(largest(Ranges.balanced(bytes, flink.size), bytes) <= flink.max)
    }

  test("the reason states that ranges are balanced, and their number") {
    val policy = Policy(
      dataVolumePerTask = 100,
      balanced = true,
      setBy = Map("ranges" -> ValueSource(SourceKind.Session, "session setting"))
    )
    val decision = Decider.decide(Seq(new Input(Array(0, 0, 390, 0, 5, 5, 0, 0))), policy)
    assert(decision.parallelism == 4)
    assert(decision.ranges.toSeq == Seq((0, 4), (4, 8)) || decision.largestTaskBytes == 390)
    assert(decision.sentence.toString.endsWith(", in 2 balanced ranges (session setting)."))
  }

  test("a stage without shuffle inputs has tasks but no ranges") {
    val balanced = Policy(dataVolumePerTask = 1, sourceParallelism = 7, balanced = true)
    val decision = Decider.decide(Nil, balanced)
    assert(decision.parallelism == 7)
    assert(decision.sentence.toString == "7 tasks: the stage has no inputs: sources.defaultParallelism.")
  }

  private def shuffles(vector: JsonNode): Seq[(JsonNode, JsonNode)] =
    vector.items("inputs").zip(vector.items("tasks")).filterNot(_._1.get("broadcast").asBoolean)

  private def bySubpartition(input: JsonNode): Seq[Long] =
    input.items("partitions").map(_.elements.asScala.map(_.asLong).toSeq).transpose.map(_.sum)

  /** The bytes of each of Flink's tasks. */
  private def flinkTasks(vector: JsonNode): Seq[Long] = shuffles(vector)
    .map { case (input, tasks) =>
      val partitions = input.items("partitions").map(_.elements.asScala.map(_.asLong).toSeq)
      tasks.elements.asScala.toSeq.map { task =>
        task.elements.asScala.map { part =>
          def at(place: Int) = part.get(place).asInt
          partitions.slice(at(0), at(1) + 1).map(_.slice(at(2), at(3) + 1).sum).sum
        }.sum
      }
    }
    .transpose
    .map(_.sum)
}
