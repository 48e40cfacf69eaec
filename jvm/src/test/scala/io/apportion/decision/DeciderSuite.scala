package io.apportion.decision

import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.prop.TableDrivenPropertyChecks._

class DeciderSuite extends AnyFunSuite {
  private val MiB = 1L << 20

  /** `n` subpartitions that hold `total` bytes together. */
  private def shuffle(total: Long, n: Int, mapTasks: Int = 0): Input =
    new Input(Array.tabulate(n)(k => total / n + (if (k < total % n) 1 else 0)), mapTasks = mapTasks)

  private def broadcast(bytes: Long): Input = new Input(Array(bytes), broadcast = true)

  private val filledTwice = Seq.fill(2)(shuffle(1024, 1024, mapTasks = 1000))

  private val halfEmpty = new Input(Array.tabulate(1024)(k => (k % 2).toLong), mapTasks = 1000)

  private val volume64 = Policy(dataVolumePerTask = 64 * MiB)

  private val exact = volume64.copy(balanced = true, rounding = Rounding.Exact)

  private val cases = Table[String, Seq[Input], Policy, Int, String](
    ("case", "inputs", "policy", "parallelism", "kind"),
    ("no inputs", Nil, volume64.copy(sourceParallelism = 7), 7, "source"),
    ("no bytes", Seq(shuffle(0, 128)), volume64, 1, "formula"),
    ("a shuffle without subpartitions", Seq(new Input(Array.empty)), volume64, 1, "formula"),
    ("one volume exactly", Seq(shuffle(64 * MiB, 128)), volume64, 1, "formula"),
    ("one byte more", Seq(shuffle(64 * MiB + 1, 128)), volume64, 2, "formula"),
    ("raw 3 is rounded up", Seq(shuffle(192 * MiB, 128)), volume64, 4, "formula"),
    ("raw 5 is rounded down", Seq(shuffle(320 * MiB, 128)), volume64, 4, "formula"),
    ("two inputs count together", Seq(shuffle(64 * MiB, 128), shuffle(64 * MiB, 128)), volume64, 2, "formula"),
    ("a broadcast takes up volume", Seq(shuffle(64 * MiB, 128), broadcast(16 * MiB)), volume64, 2, "formula"),
    ("half of it at most", Seq(shuffle(64 * MiB, 128), broadcast(1L << 40)), volume64, 2, "formula"),
    ("minimum", Seq(shuffle(1, 128)), volume64.copy(minParallelism = 5), 8, "minimum"),
    ("maximum", Seq(shuffle(1L << 40, 128)), volume64.copy(maxParallelism = 63), 32, "maximum"),
    ("as many as subpartitions", Seq(shuffle(1L << 40, 100)), volume64, 100, "subpartitions"),
    ("one subpartition", Seq(shuffle(1L << 40, 1)), volume64, 1, "subpartitions"),
    ("a set number is not rounded", Seq(shuffle(1, 128)), volume64.copy(parallelism = Some(7)), 7, "explicit"),
    ("nor bounded", Seq(shuffle(1, 128)), volume64.copy(parallelism = Some(7), maxParallelism = 4), 7, "explicit"),
    ("but by subpartitions", Seq(shuffle(1, 4)), volume64.copy(parallelism = Some(7)), 4, "subpartitions"),
    ("slots are filled", Seq(shuffle(20 * MiB, 128)), volume64.copy(slots = Some(9)), 8, "reactive"),
    ("while tasks keep 1 MiB", Seq(shuffle(3 * MiB, 128)), volume64.copy(slots = Some(9)), 2, "reactive"),
    ("slots never lower a number", Seq(shuffle(1L << 30, 128)), volume64.copy(slots = Some(2)), 16, "formula"),
    (
      "slots above the maximum",
      Seq(shuffle(1L << 30, 128)),
      volume64.copy(slots = Some(99), maxParallelism = 32),
      32,
      "reactive"
    ),
    ("exact: raw as it is", Seq(shuffle(320 * MiB, 128)), exact, 5, "formula"),
    ("exact: bounds as they are", Seq(shuffle(1L << 40, 128)), exact.copy(maxParallelism = 63), 63, "maximum"),
    ("exact: slots as they are", Seq(shuffle(20 * MiB, 128)), exact.copy(slots = Some(9)), 9, "reactive"),
    ("even ranges want a power of two", Seq(shuffle(320 * MiB, 128)), exact.copy(balanced = false), 4, "formula"),
    ("a task fetches 32768 blocks at most", Seq(shuffle(1024, 1024, mapTasks = 1000)), volume64, 32, "fanIn"),
    ("a task fetches 32768 blocks of all inputs at most", filledTwice, volume64, 64, "fanIn"),
    ("a single subpartition may have more blocks", Seq(shuffle(16, 16, mapTasks = 1000000)), volume64, 16, "fanIn"),
    (
      "the fan-in stays within the maximum",
      Seq(shuffle(1024, 1024, mapTasks = 1000)),
      volume64.copy(maxParallelism = 8),
      8,
      "fanIn"
    ),
    ("empty subpartitions have no blocks", Seq(shuffle(4, 4096, mapTasks = 2000)), volume64, 1, "formula"),
    ("half of the subpartitions have blocks", Seq(halfEmpty), volume64, 16, "fanIn"),
    (
      "blocks that are fetched in batches count less",
      Seq(shuffle(1024, 1024, mapTasks = 1000)),
      volume64.copy(fetchesInBatch = true),
      1,
      "formula"
    ),
    (
      "too many blocks even in batches",
      Seq(shuffle(1024, 1024, mapTasks = 2000)),
      volume64.copy(fetchesInBatch = true),
      2,
      "fanIn"
    ),
    (
      "a bound of Spark's for the partitions of a task",
      Seq(shuffle(4, 4096, mapTasks = 2000)),
      volume64.copy(maxSubpartitionsPerTask = 1000),
      8,
      "fanIn"
    ),
    (
      "the fan-in does not change a number that is set",
      Seq(shuffle(1024, 1024, mapTasks = 1000)),
      volume64.copy(parallelism = Some(2)),
      2,
      "explicit"
    ),
    ("a volume of one byte", Seq(shuffle(100, 128), broadcast(5)), Policy(1), 128, "formula"),
    ("bytes near 2^63", Seq(shuffle(Long.MaxValue, 128), shuffle(Long.MaxValue, 128)), volume64, 128, "subpartitions")
  )

  forAll(cases) { (name, inputs, policy, parallelism, kind) =>
    test(s"$name: $parallelism, $kind") {
      val decision = Decider.decide(inputs, policy)
      assert((decision.parallelism, decision.kind.name) == ((parallelism, kind)))
    }
  }

  test("inputs of different lengths: the longest has all subpartitions, the others are empty beyond their end") {
    val decision = Decider.decide(Seq(new Input(Array(1, 2, 3, 4)), new Input(Array(10))), Policy(5))
    assert(decision.ranges.toSeq == Seq(0 -> 1, 1 -> 2, 2 -> 3, 3 -> 4))
    assert(decision.taskBytes.toSeq == Seq(11, 2, 3, 4))
  }

  private val reasons = Table[Seq[Input], Policy, String](
    ("inputs", "policy", "reason"),
    (Seq(shuffle(64 * MiB, 128)), volume64, "1 task: 64.0 MiB at 64.0 MiB a task makes 1."),
    (Seq(shuffle(320 * MiB, 128)), volume64, "4 tasks: 320.0 MiB at 64.0 MiB a task makes 5, nearest power of two 4."),
    (
      Seq(shuffle(96 * MiB, 128), broadcast(16 * MiB)),
      volume64,
      "2 tasks: 96.0 MiB at 64.0 MiB a task less 16.0 MiB broadcast to each makes 2."
    ),
    (
      Seq(shuffle(1L << 40, 128)),
      volume64.copy(maxParallelism = 63, setBy = Map("maxParallelism" -> "session setting")),
      "32 tasks: 1.0 TiB at 64.0 MiB a task makes 16384, lowered to 32 by maxParallelism 63 (session setting)."
    ),
    (
      Seq(shuffle(5, 4)),
      volume64.copy(parallelism = Some(8), setBy = Map("parallelism" -> "session setting")),
      "4 tasks: parallelism is set to 8 (session setting), limited to the 4 subpartitions there are."
    ),
    (
      Seq(shuffle(2048 * MiB, 4)),
      volume64,
      "4 tasks: 2.0 GiB at 64.0 MiB a task makes 32, limited by its 4 partitions: tasks read 8.0 times the target size."
    ),
    (
      Seq(shuffle(512 * MiB, 4)),
      volume64,
      "4 tasks: 512.0 MiB at 64.0 MiB a task makes 8, limited to the 4 subpartitions there are."
    ),
    (
      Seq(shuffle(1, 64)),
      volume64.copy(maxSubpartitionsPerTask = 16, setBy = Map("maxSubpartitionsPerTask" -> "spark.sql.adaptive.x")),
      "4 tasks: 1 B at 64.0 MiB a task makes 1, raised so that no task reads more than 16 partitions (spark.sql.adaptive.x)."
    ),
    (
      Seq(shuffle(20 * MiB, 128)),
      volume64.copy(slots = Some(9)),
      "8 tasks: 20.0 MiB at 64.0 MiB a task makes 1, raised to use 9 slots with 1.0 MiB or more a task."
    )
  )

  forAll(reasons) { (inputs, policy, reason) =>
    test(s"reason: $reason")(assert(Decider.decide(inputs, policy).reason == reason))
  }

  private val refused = Table[String, () => Policy](
    ("message", "policy"),
    ("dataVolumePerTask is 0; it must be 1 byte or more", () => Policy(0)),
    ("broadcastRatio is 1.0; it must be above 0 and below 1", () => Policy(1, broadcastRatio = 1)),
    ("minParallelism is 0; it must be 1 or more", () => Policy(1, minParallelism = 0)),
    ("maxParallelism is 0; it must be 1 or more", () => Policy(1, maxParallelism = 0)),
    ("there is no power of two in [5, 7]", () => Policy(1, minParallelism = 5, maxParallelism = 7)),
    ("there is no power of two in [9, 8]", () => Policy(1, minParallelism = 9, maxParallelism = 8)),
    (
      "minParallelism is 9 and maxParallelism is 8: the first must not be above the second",
      () => exact.copy(minParallelism = 9, maxParallelism = 8)
    ),
    (
      "there is no power of two in [2147483647, 2147483647]",
      () => Policy(1, minParallelism = Int.MaxValue, maxParallelism = Int.MaxValue)
    )
  )

  forAll(refused) { (message, policy) =>
    test(s"refused: $message")(assert(intercept[IllegalArgumentException](policy()).getMessage.contains(message)))
  }

  private val limits = Table[String, Seq[Input], Policy, Option[Double]](
    ("case", "inputs", "policy", "limited by partitions"),
    ("enough partitions", Seq(shuffle(512 * MiB, 128)), volume64, None),
    ("half as many as wanted", Seq(shuffle(512 * MiB, 4)), volume64, Some(2.0)),
    ("a number that is set", Seq(shuffle(512 * MiB, 4)), volume64.copy(parallelism = Some(8)), None),
    ("slots to fill are no want of the bytes", Seq(shuffle(64 * MiB, 4)), volume64.copy(slots = Some(64)), None),
    ("up to the maximum alone", Seq(shuffle(1 << 30, 4)), volume64.copy(maxParallelism = 8), Some(2.0)),
    ("no inputs", Nil, volume64.copy(sourceParallelism = 7), None)
  )
  forAll(limits) { (name, inputs, policy, limit) =>
    test(s"limited by partitions: $name") {
      assert(Decider.decide(inputs, policy).limitedByPartitions == limit)
    }
  }

  test("no range spans more partitions than Spark's bound") {
    for (tasks <- Seq(1, 3, 7, 100); balanced <- Seq(true, false)) {
      val policy = exact.copy(balanced = balanced, minParallelism = tasks, maxSubpartitionsPerTask = 37)
      val decision = Decider.decide(Seq(shuffle(100 * MiB, 1000, mapTasks = 10)), policy)
      assert(decision.ranges.toSeq.forall { case (start, end) => end - start <= 37 })
    }
  }

  test("balanced ranges are no wider than a task may fetch") {
    val sizes = Array.tabulate(1024)(k => if (k < 10) MiB else 1L)
    val decision = Decider.decide(Seq(new Input(sizes, mapTasks = 1000)), exact)
    assert(decision.ranges.toSeq.forall { case (start, end) => end - start <= 32 })
    assert(decision.ranges.size == 32)
  }
}
