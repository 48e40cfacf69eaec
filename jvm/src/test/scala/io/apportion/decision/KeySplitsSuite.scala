package io.apportion.decision

import io.apportion.decision.memory.HeldRows
import org.scalatest.funsuite.AnyFunSuite

class KeySplitsSuite extends AnyFunSuite {
  private val policy = Policy(100)

  private def decide(
      bytes: Seq[Long],
      policy: Policy = policy,
      hasKeys: Boolean = true,
      held: HeldRows = HeldRows.None
  ) =
    Decider.decide(Seq(new Input(bytes.toArray, hasKeys = hasKeys, held = held)), policy)

  private def split(decision: Decision): Seq[(Int, Int)] = decision.splits.map(s => s.subpartition -> s.tasks.size)

  test("several tasks read each subpartition if all of them are too large") {
    val decision = decide(Seq(1000, 700, 1000, 1000))
    assert(split(decision) == Seq(0 -> 4, 1 -> 2, 2 -> 4, 3 -> 4))
    assert(decision.ranges.size == 0 && decision.tasks == 14 && decision.limitedByPartitions.isEmpty)
    assert(decision.splits.forall(_.byKeys) && decision.largestTaskBytes == 350)
    assert(decision.readForKeys == 3 * 1000 * 3 + 700)
  }

  test("no more than 8 tasks read a subpartition") {
    assert(split(decide(Seq.fill(2)(100000L))) == Seq(0 -> 8, 1 -> 8))
  }

  test("a subpartition that is several times the target size is not split before that") {
    assert(decide(Seq(400, 400)).splits.isEmpty)
    assert(split(decide(Seq(401, 401))) == Seq(0 -> 2, 1 -> 2))
  }

  test("one large subpartition among many is split if that reads at most a quarter of all bytes again") {
    val few = 500L +: Seq.fill(30)(50L)
    assert(split(decide(few)) == Seq(0 -> 2))
    // It may be a single heavy key, which no hash divides.
    assert(decide(900L +: Seq.fill(10)(50L)).splits.isEmpty)
  }

  test("the ranges around a split subpartition are kept") {
    val bytes = Seq.fill(5)(30L) ++ Seq(450L) ++ Seq.fill(58)(30L)
    val decision = decide(bytes)
    assert(split(decision) == Seq(5 -> 2))
    val covered =
      decision.ranges.toSeq.flatMap { case (start, end) => start until end } ++ decision.splits.map(_.subpartition)
    assert(covered.sorted == bytes.indices)
  }

  test("a subpartition whose rows do not fit the memory of a task is split") {
    val small = policy.copy(taskMemory = Some(200))
    assert(split(decide(Seq(300, 300), small, held = HeldRows(1))) == Seq(0 -> 2, 1 -> 2))
    assert(decide(Seq(300, 300), small).splits.isEmpty)
  }

  test("nothing is split by keys without keys, with a set number of tasks, or beyond the maximum number of tasks") {
    val large = Seq(1000L, 1000L)
    assert(decide(large, hasKeys = false).splits.isEmpty)
    assert(decide(large, policy.copy(parallelism = Some(2))).splits.isEmpty)
    assert(decide(large, policy.copy(maxParallelism = 2)).splits.isEmpty)
  }
}
