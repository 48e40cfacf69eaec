package io.apportion.decision

import io.apportion.decision.ranges.{Bytes, Ranges}
import org.scalacheck.{Gen, Properties, Test}
import org.scalacheck.Prop.forAll

/** What holds for every input, up to sums near 2^63. */
object DeciderProperties extends Properties("Decider") {

  override def overrideParameters(p: Test.Parameters): Test.Parameters = p.withMinSuccessfulTests(500)

  private val byteCount: Gen[Long] = Gen.frequency(
    5 -> Gen.choose(0L, 1L << 30),
    2 -> Gen.const(0L),
    2 -> Gen.choose(0L, 1L << 50),
    1 -> Gen.choose(Long.MaxValue - 1000, Long.MaxValue)
  )

  private val inputs: Gen[Seq[Input]] = for {
    subpartitions <- Gen.frequency(1 -> Gen.const(1), 5 -> Gen.choose(1, 300))
    shuffles <- Gen.choose(1, 4)
    bytes <- Gen.listOfN(shuffles, Gen.listOfN(subpartitions, byteCount))
    broadcasts <- Gen.listOf(byteCount)
  } yield bytes.map(b => new Input(b.toArray)) ++ broadcasts.map(b => new Input(Array(b), broadcast = true))

  private val policies: Gen[Policy] = for {
    volume <- Gen.oneOf(Gen.choose(1L, 100L), Gen.choose(1L, 1L << 30), Gen.const(Long.MaxValue))
    ratio <- Gen.choose(0.001, 0.999)
    lower <- Gen.choose(0, 8)
    upper <- Gen.choose(lower, 16)
    parallelism <- Gen.option(Gen.choose(1, 1000))
    slots <- Gen.option(Gen.choose(1, 4096))
  } yield Policy(volume, ratio, 1 << lower, 1 << upper, parallelism, slots)

  private def checkAll(holds: (Seq[Input], Policy, Decision) => Boolean) =
    forAll(inputs, policies)((in, policy) => holds(in, policy, Decider.decide(in, policy)))

  private def shuffles(inputs: Seq[Input]) = inputs.filterNot(_.broadcast).map(_.bytes)

  /** Bytes of the largest task if tasks are filled in order, up to the target size. */
  private def largestOfSpark(bytes: Array[Long], volume: Long): Long = {
    val tasks = bytes.foldLeft(List(0L)) { (tasks, size) =>
      if (Bytes.add(tasks.head, size) <= volume) Bytes.add(tasks.head, size) :: tasks.tail else size :: tasks
    }
    tasks.max
  }

  private def exactSum(bytes: Iterable[Long]) = bytes.map(BigInt(_)).sum

  property("ranges cover all shuffle partitions once, in order") = checkAll { (in, _, decision) =>
    decision.ranges.toSeq.flatMap { case (start, end) => start until end } == shuffles(in).head.indices
  }

  property("no range is empty") = checkAll { (_, _, decision) =>
    decision.ranges.toSeq.forall { case (start, end) => start < end }
  }

  property("there is a range for every task, and more only where Spark's tasks would be smaller") = checkAll {
    (in, policy, decision) =>
      val bytes = Bytes.sumEach(shuffles(in))
      val even = Ranges.even(bytes.length, decision.parallelism)
      if (decision.ranges.size > decision.parallelism)
        policy.parallelism.isEmpty && (!exactSum(bytes).isValidLong || even.bytesOf(bytes).max > largestOfSpark(
          bytes,
          policy.dataVolumePerTask
        ))
      else decision.ranges == even
  }

  property("no task reads more than 1.1 times the bytes of Spark's largest, where no setting limits their number") =
    forAll(inputs, policies) { (in, policy) =>
      val decision = Decider.decide(in, policy.copy(maxParallelism = 1 << 20, parallelism = None))
      val bytes = Bytes.sumEach(shuffles(in))
      !exactSum(bytes).isValidLong || decision.largestTaskBytes <= largestOfSpark(bytes, policy.dataVolumePerTask) * 1.1
    }

  property("the parallelism is within the bounds, and at most the number of shuffle partitions") = checkAll {
    (in, policy, decision) =>
      val n = shuffles(in).head.length
      val wanted = policy.parallelism.fold(policy.lowerBound to policy.upperBound)(p => p to p)
      decision.parallelism <= n && (wanted.contains(
        decision.parallelism
      ) || decision.parallelism == n && n < wanted.start)
  }

  property("a decided parallelism is a power of two, or the number of shuffle partitions") =
    checkAll { (in, policy, decision) =>
      policy.parallelism.isDefined || Integer.bitCount(decision.parallelism) == 1 || decision.parallelism == shuffles(
        in
      ).head.length
    }

  property("tasks read all input bytes, unless the sum saturates") = checkAll { (in, _, decision) =>
    val total = exactSum(shuffles(in).flatten)
    if (total.isValidLong) exactSum(decision.taskBytes) == total && decision.inputBytes == total
    else decision.inputBytes == Long.MaxValue && decision.taskBytes.forall(_ >= 0)
  }

  property("no number overflows") = checkAll { (_, _, decision) =>
    decision.raw >= 0 && decision.rounded >= 1 && decision.largestTaskBytes >= decision.meanTaskBytes && decision.meanTaskBytes >= 0
  }

  property("the raw number of tasks equals exact arithmetic") = checkAll { (in, policy, decision) =>
    val total = exactSum(shuffles(in).flatten).min(Long.MaxValue)
    val taken = BigInt(decision.broadcastBytes).min(policy.broadcastCap).min(policy.dataVolumePerTask - 1)
    val divisor = BigInt(policy.dataVolumePerTask) - taken
    decision.raw == (total + divisor - 1) / divisor
  }

  property("tasks that fill slots read at least minTaskVolume on average") = checkAll { (_, _, decision) =>
    decision.kind != Kind.Reactive || decision.inputBytes / decision.parallelism >= (1L << 20)
  }
}
