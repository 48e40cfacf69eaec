package io.apportion.decision

import scala.util.Random

import org.scalacheck.Gen
import org.scalatest.funsuite.AnyFunSuite
import org.scalatestplus.scalacheck.ScalaCheckPropertyChecks

/** Ranges and splits together: against all layouts there are, and what they may not do. */
class SkewSplitsSuite extends AnyFunSuite with ScalaCheckPropertyChecks {

  /** Blocks by map task and subpartition, as one input. */
  private def input(blocks: Seq[Seq[Long]], splittable: Boolean = true): Input = new Input(
    blocks.transpose.map(_.sum).toArray,
    mapTasks = blocks.size,
    blocks = Option.when(splittable)(_.map(i => blocks.map(_(i)).toArray))
  )

  private def policy(tasks: Int): Policy = Policy(dataVolumePerTask = 1, parallelism = Some(tasks), minTaskVolume = 1)

  /** The least largest task of at most `tasks` contiguous ones, by trying every way to cut. */
  private def leastOfRanges(bytes: Seq[Long], tasks: Int): Long =
    if (bytes.isEmpty) 0
    else if (tasks == 0) Long.MaxValue
    else (1 to bytes.size).map(n => bytes.take(n).sum.max(leastOfRanges(bytes.drop(n), tasks - 1))).min

  /** The same, where what is larger than the threshold may be read in parts as well, none of them above three quarters. */
  private def least(columns: Seq[Seq[Long]], tasks: Int, threshold: Double): Long =
    if (columns.isEmpty) 0
    else if (tasks <= 0) Long.MaxValue
    else {
      val whole =
        (1 to columns.size).map(n => columns.take(n).map(_.sum).sum.max(least(columns.drop(n), tasks - 1, threshold)))
      val parts =
        if (columns.head.sum <= threshold) Nil
        else
          (2 to tasks)
            .map(n => leastOfRanges(columns.head, n) -> n)
            .collect {
              case (part, n) if part <= (columns.head.sum * 0.75).toLong =>
                part.max(least(columns.tail, tasks - n, threshold))
            }
      (whole ++ parts).min
    }

  private val matrices = for {
    mapTasks <- Gen.choose(1, 4)
    subpartitions <- Gen.choose(1, 5)
    blocks <- Gen.listOfN(mapTasks, Gen.listOfN(subpartitions, Gen.oneOf(Gen.choose(0L, 9L), Gen.choose(0L, 100L))))
  } yield blocks

  test("no layout with as many tasks has a smaller largest task") {
    forAll(matrices, Gen.choose(1, 5), minSuccessful(500)) { (blocks, tasks) =>
      val total = blocks.flatten.sum
      val decision = Decider.decide(Seq(input(blocks)), policy(tasks).copy(balanced = true))
      assert(decision.taskBytes.length <= tasks)
      val threshold = (total / tasks).max(1) * 1.25
      assert(decision.largestTaskBytes == least(blocks.transpose, tasks, threshold))
    }
  }

  test("with many map tasks, the largest task is near the mean") {
    val random = new Random(1)
    val blocks = Seq.fill(5000)(Seq(700L + random.nextInt(700), 100L + random.nextInt(100)))
    val decision = Decider.decide(Seq(input(blocks)), policy(tasks = 8))
    assert(decision.splits.map(_.tasks.size) == Seq(7))
    assert(decision.splits.head.taskBytes.max <= blocks.flatten.sum / 8 * 1.03)
  }

  test("every block is read once, but each part reads the whole other side of a join") {
    forAll(matrices, Gen.choose(2, 40), minSuccessful(500)) { (blocks, tasks) =>
      val other = blocks.map(_.map(_ / 10))
      val (left, right) = (input(blocks), input(other, splittable = false))
      val decision = Decider.decide(Seq(left, right), policy(tasks))
      val inRanges = decision.ranges.toSeq.flatMap { case (start, end) => start until end }
      assert((inRanges ++ decision.splits.map(_.subpartition)).sorted == blocks.head.indices)
      decision.splits.foreach { case Split(i, parts, _) =>
        assert(parts.size > 1)
        val mapTasks = parts.map(_.head.mapTasks.get)
        assert(mapTasks.head._1 == 0 && mapTasks.last._2 == blocks.size)
        assert(mapTasks.map(_._1).tail == mapTasks.map(_._2).init)
        assert(parts.map(_.head.bytes).sum == left.bytes(i))
        assert(parts.forall(_(1) == Part(None, right.bytes(i))))
        assert(parts.map(_.map(_.bytes).sum).sum <= 2 * (left.bytes(i) + right.bytes(i)))
      }
    }
  }

  private val hot = Seq.fill(20)(Seq(1L, 1L, 50L, 1L))

  test("both sides of a join are split if both are large") {
    val decision = Decider.decide(Seq(input(hot), input(hot)), policy(8))
    assert(decision.splits.map(_.subpartition) == Seq(2))
    val tasks = decision.splits.head.tasks
    assert(tasks.map(_.map(_.mapTasks)).distinct.size == 4)
    assert(tasks.map(_.map(_.bytes)) == Seq.fill(4)(Seq(500L, 500L)))
    assert(decision.skewed.isEmpty)
  }

  test("a split may add tasks unless the parallelism is explicit") {
    val asked = Decider.decide(Seq(input(hot)), policy(2))
    assert(asked.splits.isEmpty && asked.taskBytes.length <= 2)
    val decided = Decider.decide(Seq(input(hot)), Policy(dataVolumePerTask = 530, minTaskVolume = 1))
    assert(decided.parallelism == 2)
    assert(decided.taskBytes.toSeq == Seq(40, 20, 500, 500))
  }

  private val notSplit: Seq[(String, Seq[Input], Policy)] = Seq(
    ("nothing is skewed", Seq(input(Seq.fill(20)(Seq(1L, 1L, 1L, 1L)))), policy(4)),
    ("there is a single task", Seq(input(hot)), policy(1)),
    (
      "the partition is smaller than the target size",
      Seq(input(hot)),
      policy(8).copy(1 << 20, minTaskVolume = 1 << 20)
    ),
    ("rows must stay together", Seq(input(hot, splittable = false)), policy(8)),
    ("there is a single map task", Seq(input(Seq(Seq(1L, 1L, 50L, 1L)))), policy(8)),
    (
      "the other side would be read too often",
      Seq(input(hot), input(hot.map(_.map(_ * 10)), splittable = false)),
      policy(8)
    )
  )
  for ((why, inputs, policy) <- notSplit)
    test(s"no partition is split if $why") {
      val decision = Decider.decide(inputs, policy)
      assert(decision.splits.isEmpty)
      val large = decision.largestTaskBytes > 1.25 * decision.inputBytes / decision.parallelism
      assert(decision.skewed == (if (large && policy.minTaskVolume == 1) Seq(2) else Nil))
    }
}
