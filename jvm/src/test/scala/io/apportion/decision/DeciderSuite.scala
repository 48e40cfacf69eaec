package io.apportion.decision

import io.apportion.decision.memory.HeldRows
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.prop.TableDrivenPropertyChecks._

class DeciderSuite extends AnyFunSuite {
  private val MiB = 1L << 20

  /** `n` subpartitions that hold `total` bytes together. */
  private def shuffle(total: Long, n: Int, mapTasks: Int = 0): Input =
    new Input(Array.tabulate(n)(k => total / n + (if (k < total % n) 1 else 0)), mapTasks = mapTasks)

  private def held(input: Input, perByte: Double): Input =
    new Input(input.bytes, mapTasks = input.mapTasks, held = HeldRows(perByte))

  private def broadcast(bytes: Long): Input = new Input(Array(bytes), broadcast = true)

  private val filledTwice = Seq.fill(2)(shuffle(1024, 1024, mapTasks = 1000))

  private val halfEmpty = new Input(Array.tabulate(1024)(k => (k % 2).toLong), mapTasks = 1000)

  private val volume64 = Policy(dataVolumePerTask = 64 * MiB)

  private val exact = volume64.copy(balanced = true, rounding = Rounding.Exact)

  private val cases = Table[String, Seq[Input], Policy, Int, String](
    ("case", "inputs", "policy", "parallelism", "kind"),
    ("a stage without inputs gets the parallelism of sources", Nil, volume64.copy(sourceParallelism = 7), 7, "source"),
    ("a shuffle without bytes gets one task", Seq(shuffle(0, 128)), volume64, 1, "formula"),
    ("a shuffle without partitions gets one task", Seq(new Input(Array.empty)), volume64, 1, "formula"),
    ("bytes of exactly one target size get one task", Seq(shuffle(64 * MiB, 128)), volume64, 1, "formula"),
    ("one byte more than the target size gets two tasks", Seq(shuffle(64 * MiB + 1, 128)), volume64, 2, "formula"),
    ("3 raw tasks are rounded up", Seq(shuffle(192 * MiB, 128)), volume64, 4, "formula"),
    ("5 raw tasks are rounded down", Seq(shuffle(320 * MiB, 128)), volume64, 4, "formula"),
    ("the bytes of two inputs are added", Seq(shuffle(64 * MiB, 128), shuffle(64 * MiB, 128)), volume64, 2, "formula"),
    (
      "a broadcast takes up a part of the target size",
      Seq(shuffle(64 * MiB, 128), broadcast(16 * MiB)),
      volume64,
      2,
      "formula"
    ),
    (
      "a broadcast takes up at most half of the target size",
      Seq(shuffle(64 * MiB, 128), broadcast(1L << 40)),
      volume64,
      2,
      "formula"
    ),
    ("the minimum raises the number of tasks", Seq(shuffle(1, 128)), volume64.copy(minParallelism = 5), 8, "minimum"),
    (
      "the maximum lowers the number of tasks",
      Seq(shuffle(1L << 40, 128)),
      volume64.copy(maxParallelism = 63),
      32,
      "maximum"
    ),
    ("the number of shuffle partitions limits the tasks", Seq(shuffle(1L << 40, 100)), volume64, 100, "subpartitions"),
    ("one shuffle partition is read by one task", Seq(shuffle(1L << 40, 1)), volume64, 1, "subpartitions"),
    (
      "an explicit parallelism is not rounded",
      Seq(shuffle(1, 128)),
      volume64.copy(parallelism = Some(7)),
      7,
      "explicit"
    ),
    (
      "an explicit parallelism is not limited by the maximum",
      Seq(shuffle(1, 128)),
      volume64.copy(parallelism = Some(7), maxParallelism = 4),
      7,
      "explicit"
    ),
    (
      "an explicit parallelism is limited by the shuffle partitions",
      Seq(shuffle(1, 4)),
      volume64.copy(parallelism = Some(7)),
      4,
      "subpartitions"
    ),
    ("a small stage fills the slots", Seq(shuffle(20 * MiB, 128)), volume64.copy(slots = Some(9)), 8, "reactive"),
    (
      "tasks that fill slots read at least 1 MiB",
      Seq(shuffle(3 * MiB, 128)),
      volume64.copy(slots = Some(9)),
      2,
      "reactive"
    ),
    (
      "slots never lower the number of tasks",
      Seq(shuffle(1L << 30, 128)),
      volume64.copy(slots = Some(2)),
      16,
      "formula"
    ),
    (
      "slots are filled up to the maximum",
      Seq(shuffle(1L << 30, 128)),
      volume64.copy(slots = Some(99), maxParallelism = 32),
      32,
      "reactive"
    ),
    ("exact rounding keeps the raw number", Seq(shuffle(320 * MiB, 128)), exact, 5, "formula"),
    ("exact rounding keeps the bounds", Seq(shuffle(1L << 40, 128)), exact.copy(maxParallelism = 63), 63, "maximum"),
    (
      "exact rounding keeps the number of slots",
      Seq(shuffle(20 * MiB, 128)),
      exact.copy(slots = Some(9)),
      9,
      "reactive"
    ),
    ("even ranges need a power of two", Seq(shuffle(320 * MiB, 128)), exact.copy(balanced = false), 4, "formula"),
    ("a task fetches at most 32768 blocks", Seq(shuffle(1024, 1024, mapTasks = 1000)), volume64, 32, "fanIn"),
    ("a task fetches at most 32768 blocks of all inputs together", filledTwice, volume64, 64, "fanIn"),
    (
      "a single shuffle partition may have more blocks than the limit",
      Seq(shuffle(16, 16, mapTasks = 1000000)),
      volume64,
      16,
      "fanIn"
    ),
    (
      "the limit of blocks does not raise the tasks above the maximum",
      Seq(shuffle(1024, 1024, mapTasks = 1000)),
      volume64.copy(maxParallelism = 8),
      8,
      "fanIn"
    ),
    ("empty shuffle partitions have no blocks", Seq(shuffle(4, 4096, mapTasks = 2000)), volume64, 1, "formula"),
    ("only non-empty shuffle partitions have blocks", Seq(halfEmpty), volume64, 16, "fanIn"),
    (
      "blocks that are fetched in batches count less",
      Seq(shuffle(1024, 1024, mapTasks = 1000)),
      volume64.copy(fetchesInBatch = true),
      1,
      "formula"
    ),
    (
      "blocks that are fetched in batches can still be too many",
      Seq(shuffle(1024, 1024, mapTasks = 2000)),
      volume64.copy(fetchesInBatch = true),
      2,
      "fanIn"
    ),
    (
      "Spark's limit of partitions per task raises the number of tasks",
      Seq(shuffle(4, 4096, mapTasks = 2000)),
      volume64.copy(maxSubpartitionsPerTask = 1000),
      8,
      "fanIn"
    ),
    (
      "the limit of blocks does not change an explicit parallelism",
      Seq(shuffle(1024, 1024, mapTasks = 1000)),
      volume64.copy(parallelism = Some(2)),
      2,
      "explicit"
    ),
    (
      "rows that do not fit the memory of a task get more tasks",
      Seq(held(shuffle(64 * MiB, 128), 10)),
      volume64.copy(taskMemory = Some(100 * MiB)),
      8,
      "memory"
    ),
    (
      "rows of all inputs share the memory of a task",
      Seq.fill(2)(held(shuffle(32 * MiB, 128), 10)),
      volume64.copy(taskMemory = Some(100 * MiB)),
      8,
      "memory"
    ),
    (
      "rows that no operator holds need no memory",
      Seq(shuffle(64 * MiB, 128)),
      volume64.copy(taskMemory = Some(1)),
      1,
      "formula"
    ),
    (
      "a large shuffle partition gets no more tasks, as it does not fit in any case",
      Seq(held(new Input(Array.tabulate(128)(k => if (k == 5) 60 * MiB else MiB / 128)), 10)),
      volume64.copy(taskMemory = Some(100 * MiB)),
      1,
      "formula"
    ),
    (
      "a few shuffle partitions that do not fit get a task each, and no empty tasks between them",
      Seq(held(new Input(Array.tabulate(128)(k => if (k % 32 == 0) 60 * MiB else 0)), 10)),
      volume64.copy(dataVolumePerTask = 1L << 30, taskMemory = Some(100 * MiB)),
      4,
      "memory"
    ),
    (
      "the largest task has to fit, not the mean",
      Seq(held(new Input(Array.tabulate(128)(k => if (k < 16) 4 * MiB else 0)), 10)),
      volume64.copy(taskMemory = Some(100 * MiB)),
      64,
      "memory"
    ),
    (
      "balanced ranges need fewer tasks for the same memory",
      Seq(held(new Input(Array.tabulate(128)(k => if (k < 16) 4 * MiB else 0)), 10)),
      exact.copy(taskMemory = Some(100 * MiB)),
      8,
      "memory"
    ),
    (
      "memory does not raise the tasks above the maximum",
      Seq(held(shuffle(64 * MiB, 128), 10)),
      volume64.copy(taskMemory = Some(MiB), maxParallelism = 16),
      16,
      "memory"
    ),
    (
      "memory does not raise the tasks above the shuffle partitions",
      Seq(held(shuffle(64 * MiB, 8), 10)),
      volume64.copy(taskMemory = Some(90 * MiB)),
      8,
      "memory"
    ),
    (
      "memory does not change an explicit parallelism",
      Seq(held(shuffle(64 * MiB, 128), 10)),
      volume64.copy(taskMemory = Some(MiB), parallelism = Some(2)),
      2,
      "explicit"
    ),
    ("the target size can be one byte", Seq(shuffle(100, 128), broadcast(5)), Policy(1), 128, "formula"),
    (
      "bytes near 2^63 do not overflow",
      Seq(shuffle(Long.MaxValue, 128), shuffle(Long.MaxValue, 128)),
      volume64,
      128,
      "subpartitions"
    )
  )

  forAll(cases) { (name, inputs, policy, parallelism, kind) =>
    test(s"$name: parallelism $parallelism, kind $kind") {
      val decision = Decider.decide(inputs, policy)
      assert((decision.parallelism, decision.kind.name) == ((parallelism, kind)))
    }
  }

  test("an input with fewer partitions than another counts as empty beyond its end") {
    val decision = Decider.decide(Seq(new Input(Array(1, 2, 3, 4)), new Input(Array(10))), Policy(5))
    assert(decision.ranges.toSeq == Seq(0 -> 1, 1 -> 2, 2 -> 3, 3 -> 4))
    assert(decision.taskBytes.toSeq == Seq(11, 2, 3, 4))
  }

  private val reasons = Table[Seq[Input], Policy, String](
    ("inputs", "policy", "reason"),
    (Seq(shuffle(64 * MiB, 128)), volume64, "1 task: 64 MiB at 64 MiB per task."),
    (
      Seq(shuffle(320 * MiB, 128)),
      volume64,
      "8 tasks: 320 MiB at 64 MiB per task makes 5, rounded to 4 (power of two), divided into 8 so that no task is much " +
        "larger than Spark's."
    ),
    (
      Seq(shuffle(96 * MiB, 128), broadcast(16 * MiB)),
      volume64,
      "2 tasks: 96 MiB at 64 MiB per task less 16 MiB for broadcasts."
    ),
    (
      Seq(shuffle(1L << 40, 128)),
      volume64
        .copy(maxParallelism = 63, setBy = Map("maxParallelism" -> ValueSource(SourceKind.Session, "session setting"))),
      "32 tasks: 1 TiB at 64 MiB per task makes 16384, lowered to 32 by maxParallelism 63 (session setting)."
    ),
    (
      Seq(shuffle(5, 4)),
      volume64
        .copy(parallelism = Some(8), setBy = Map("parallelism" -> ValueSource(SourceKind.Session, "session setting"))),
      "4 tasks: parallelism is set to 8 (session setting), limited to 4 shuffle partitions."
    ),
    (
      Seq(shuffle(2048 * MiB, 4)),
      volume64,
      "4 tasks: 2 GiB at 64 MiB per task makes 32, limited by 4 shuffle partitions: tasks read 8.0 times the target size."
    ),
    (
      Seq(shuffle(512 * MiB, 4)),
      volume64,
      "4 tasks: 512 MiB at 64 MiB per task makes 8, limited to 4 shuffle partitions."
    ),
    (
      Seq(shuffle(1, 64)),
      volume64.copy(
        maxSubpartitionsPerTask = 16,
        setBy = Map("maxSubpartitionsPerTask" -> ValueSource(SourceKind.Session, "spark.sql.adaptive.x"))
      ),
      "4 tasks: 1 B at 64 MiB per task makes 1, raised so that no task reads more than 16 shuffle partitions (spark.sql.adaptive.x)."
    ),
    (
      Seq(shuffle(20 * MiB, 128)),
      volume64.copy(slots = Some(9)),
      "8 tasks: 20 MiB at 64 MiB per task makes 1, raised to use 9 slots with 1 MiB or more per task."
    )
  )

  forAll(reasons) { (inputs, policy, reason) =>
    test(s"reason: $reason")(assert(Decider.decide(inputs, policy).sentence.toString == reason))
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
    test(s"a policy is refused: $message")(
      assert(intercept[IllegalArgumentException](policy()).getMessage.contains(message))
    )
  }

  private val limits = Table[String, Seq[Input], Policy, Option[Double]](
    ("case", "inputs", "policy", "limited by partitions"),
    ("is empty if there are enough partitions", Seq(shuffle(512 * MiB, 128)), volume64, None),
    ("is the ratio of needed tasks to partitions", Seq(shuffle(512 * MiB, 4)), volume64, Some(2.0)),
    ("is empty if the parallelism is explicit", Seq(shuffle(512 * MiB, 4)), volume64.copy(parallelism = Some(8)), None),
    ("does not count tasks that only fill slots", Seq(shuffle(64 * MiB, 4)), volume64.copy(slots = Some(64)), None),
    ("counts needed tasks up to the maximum", Seq(shuffle(1 << 30, 4)), volume64.copy(maxParallelism = 8), Some(2.0)),
    ("is empty without inputs", Nil, volume64.copy(sourceParallelism = 7), None)
  )
  forAll(limits) { (name, inputs, policy, limit) =>
    test(s"limitedByPartitions $name") {
      assert(Decider.decide(inputs, policy).limitedByPartitions == limit)
    }
  }

  test("a range with several small partitions beside a large one is halved, and the others are not") {
    val bytes = Array.fill(8)(30 * MiB)
    bytes(5) = 60 * MiB
    val decision = Decider.decide(Seq(new Input(bytes)), volume64)
    assert(decision.parallelism == 4)
    assert(decision.ranges.toSeq == Seq(0 -> 2, 2 -> 4, 4 -> 5, 5 -> 6, 6 -> 8))
    assert(
      decision.sentence.toString.endsWith(
        "rounded to 4 (power of two), divided into 5 so that no task is much larger than Spark's."
      )
    )
  }

  test("few large partitions in one range are divided if the stage ends sooner") {
    val fewKeys = new Array[Long](256)
    Seq(10, 40, 90, 200).foreach(fewKeys(_) = 6 * MiB)
    val manyKeys = Array.tabulate(256)(k => (if (k < 128) 57 else 43) * (MiB / 128))
    val policy = volume64.copy(slots = Some(2))
    assert(Decider.decide(Seq(new Input(fewKeys)), policy).ranges.toSeq == Seq(0 -> 64, 64 -> 128, 128 -> 256))
    assert(Decider.decide(Seq(new Input(manyKeys)), policy).tasks == 2)
    assert(Decider.decide(Seq(new Input(fewKeys)), volume64.copy(slots = None)).tasks == 1)
  }

  test("ranges are halved if tasks would read more than Spark's with the bytes that they read twice") {
    def tasks(readTwice: Double) = {
      val input = new Input(Array.fill(128)(2 * MiB), readTwice = _ => readTwice)
      Decider.decide(Seq(input), volume64).tasks
    }
    assert((tasks(0), tasks(0.09), tasks(0.2)) == ((4, 4, 8)))
  }

  test("ranges are not halved beyond maxParallelism, nor if the number of tasks is set") {
    for (policy <- Seq(volume64.copy(maxParallelism = 4), volume64.copy(parallelism = Some(4))))
      assert(Decider.decide(Seq(shuffle(320 * MiB, 128)), policy).tasks == 4)
  }

  test("no range spans more partitions than Spark's limit") {
    for (tasks <- Seq(1, 3, 7, 100); balanced <- Seq(true, false)) {
      val policy = exact.copy(balanced = balanced, minParallelism = tasks, maxSubpartitionsPerTask = 37)
      val decision = Decider.decide(Seq(shuffle(100 * MiB, 1000, mapTasks = 10)), policy)
      assert(decision.ranges.toSeq.forall { case (start, end) => end - start <= 37 })
    }
  }

  test("balanced ranges have no more blocks than a task may fetch") {
    val sizes = Array.tabulate(1024)(k => if (k < 10) MiB else 1L)
    val decision = Decider.decide(Seq(new Input(sizes, mapTasks = 1000)), exact)
    assert(decision.ranges.toSeq.forall { case (start, end) => end - start <= 32 })
    assert(decision.ranges.size == 32)
  }
}
