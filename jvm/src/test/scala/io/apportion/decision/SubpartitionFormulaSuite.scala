package io.apportion.decision

import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.prop.TableDrivenPropertyChecks._

/** N by the interval of the bytes, the target size of 64 MiB and Spark's own number of 200. */
class SubpartitionFormulaSuite extends AnyFunSuite {
  private val (mib, gib) = (1L << 20, 1L << 30)
  private val target64 = Policy(dataVolumePerTask = 64 * mib)
  private val sparks = ShuffleDefaults(partitions = 200)

  private def exactly(bytes: Long) = ByteInterval.exactly(bytes)
  private def unbounded(low: Long) = ByteInterval(low, ByteInterval.Unbounded)

  private val cases = Table[String, ByteInterval, Long, ShuffleDefaults, Policy, Int](
    ("case", "bytes", "map tasks", "Spark's defaults", "policy", "partitions"),
    ("no bytes get two partitions", exactly(0), 1, sparks, target64, 2),
    ("bytes of one task get two partitions", exactly(64 * mib), 1, sparks, target64, 2),
    ("known bytes get two partitions per task", exactly(gib), 8, sparks, target64, 32),
    ("an upper end below Spark's number sets the number", ByteInterval(mib, gib), 8, sparks, target64, 32),
    ("an upper end above Spark's number keeps Spark's number", ByteInterval(mib, 200 * gib), 8, sparks, target64, 256),
    ("bytes without an upper end get Spark's number", unbounded(0), 8, sparks, target64, 256),
    ("bytes without an upper end get the number that the user set", unbounded(0), 8, ShuffleDefaults(8), target64, 8),
    ("a number that the user set is never lowered", unbounded(0), 8, ShuffleDefaults(1500), target64, 1500),
    ("a large number that the user set is raised", unbounded(0), 8, ShuffleDefaults(4000), target64, 4096),
    ("a lower end above Spark's number sets the number", unbounded(50 * gib), 400, sparks, target64, 1024),
    ("known bytes above Spark's number get one partition per task", exactly(64 * gib), 8, sparks, target64, 1024),
    ("exact sizes are kept up to twice their limit", exactly(120 * gib), 8, sparks, target64, 1024),
    ("beyond twice the limit of exact sizes, the bytes set the number", exactly(300 * gib), 8, sparks, target64, 8192),
    (
      "a user's number above the limit of exact sizes is raised",
      unbounded(0),
      8,
      ShuffleDefaults(2500),
      target64,
      4096
    ),
    ("128 partitions are raised to 256, which Spark writes faster", exactly(4 * gib), 8, sparks, target64, 256),
    (
      "128 partitions stay without the bypass writer",
      exactly(4 * gib),
      8,
      ShuffleDefaults(200, bypassUpTo = 1),
      target64,
      128
    ),
    ("slots that a stage can fill count as tasks", exactly(16 * mib), 2, sparks, target64.copy(slots = Some(9)), 16),
    (
      "the maximum parallelism limits the number",
      exactly(200 * gib),
      1600,
      sparks,
      target64.copy(maxParallelism = 100),
      64
    ),
    ("the minimum parallelism raises the number", exactly(0), 1, sparks, target64.copy(minParallelism = 5), 16),
    (
      "the limit of blocks does not lower Spark's number",
      exactly(200 * gib),
      1600,
      sparks,
      target64.copy(maxBlocksPerShuffle = 1L << 16),
      200
    ),
    (
      "a number that the user set is not raised above the limit of blocks",
      unbounded(0),
      5000,
      ShuffleDefaults(10000),
      target64,
      10000
    ),
    ("balanced ranges get eight partitions per task", exactly(gib / 2), 8, sparks, target64.copy(balanced = true), 64),
    ("an explicit parallelism is used as given", unbounded(0), 8, sparks, target64.copy(parallelism = Some(150)), 150),
    (
      "balanced ranges get eight partitions per task of an explicit parallelism",
      exactly(gib),
      8,
      sparks,
      target64.copy(parallelism = Some(150), balanced = true),
      2048
    ),
    ("huge byte counts get the largest number", exactly(Long.MaxValue - 1), 1, sparks, target64, 32768)
  )

  forAll(cases) { (name, bytes, mapTasks, defaults, policy, expected) =>
    test(s"$name: $expected")(assert(SubpartitionFormula.of(bytes, mapTasks, defaults, policy) == expected))
  }

  test("without estimates, the number is Spark's, raised to a power of two and to the minimum parallelism") {
    assert(SubpartitionFormula.unestimated(sparks, target64) == 256)
    assert(SubpartitionFormula.unestimated(sparks, target64.copy(parallelism = Some(300))) == 300)
    assert(SubpartitionFormula.unestimated(sparks, target64.copy(minParallelism = 300)) == 512)
  }

  test("filled counts the non-empty partitions of a smaller number of shuffle partitions") {
    val bytes = Array[Long](0, 9, 0, 0, 0, 9, 9, 0, 0, 9, 0, 0)
    assert(SubpartitionFormula.filled(bytes, 12) == 4)
    assert(SubpartitionFormula.filled(bytes, 6) == 4)
    assert(SubpartitionFormula.filled(bytes, 4) == 2)
    assert(SubpartitionFormula.filled(bytes, 1) == 1)
    assert(SubpartitionFormula.filled(new Array[Long](12), 4) == 0)
    assert(math.abs(SubpartitionFormula.filled(bytes, 5) - 5 * (1 - math.pow(0.8, 4))) < 1e-9)
  }

  test("rows that need the memory of 60 tasks get two partitions per task") {
    val policy = target64.copy(taskMemory = Some(100 * mib))
    assert(SubpartitionFormula.of(exactly(gib), 8, sparks.copy(bypassUpTo = 1), policy, exactly(6000 * mib)) == 128)
  }

  test("a writer that would spill above 200 partitions gets 128, unless the readers need more") {
    val policy = target64.copy(taskMemory = Some(100 * mib))
    def n(held: Long, written: Long) =
      SubpartitionFormula.of(unbounded(mib), 8, sparks, policy, unbounded(held), written)
    assert(n(held = mib, written = 100 * mib) == 256)
    assert(n(held = mib, written = 101 * mib) == 128)
    assert(n(held = 30 * gib, written = 101 * mib) == 512)
  }

  test("a map task of a million rows writes 200 partitions without a sort, unless the readers need more") {
    def n(bytes: ByteInterval, rows: Double, defaults: ShuffleDefaults = sparks) =
      SubpartitionFormula.of(bytes, 8, defaults, target64, rows = rows)
    assert(n(unbounded(mib), rows = 999999) == 256)
    assert(n(unbounded(mib), rows = 1000000) == 200)
    assert(n(unbounded(20 * gib), rows = 1000000) == 512)
    assert(n(unbounded(mib), rows = 1000000, ShuffleDefaults(partitions = 500)) == 512)
    assert(n(unbounded(mib), rows = 1000000, sparks.copy(bypassUpTo = 1)) == 256)
  }

  test("a writer that spills with Spark's number too keeps this number") {
    val policy = target64.copy(taskMemory = Some(100 * mib))
    val wide = ShuffleDefaults(partitions = 500)
    assert(SubpartitionFormula.of(unbounded(mib), 8, wide, policy, unbounded(mib), 101 * mib) == 512)
  }
}
