package io.apportion.decision

import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.prop.TableDrivenPropertyChecks._

class SubpartitionCountSuite extends AnyFunSuite {
  private val (mib, gib) = (1L << 20, 1L << 30)
  private val volume64 = Policy(dataVolumePerTask = 64 * mib)

  private val cases = Table[String, Long, Long, Policy, Int](
    ("case", "likely bytes", "map tasks", "policy", "subpartitions"),
    ("nothing", 0, 1, volume64, 2),
    ("one task, and room for another", 64 * mib, 1, volume64, 2),
    ("twice the tasks that are likely", gib, 8, volume64, 32),
    ("200 GiB", 200 * gib, 1600, volume64, 8192),
    ("the slots count as likely tasks", 16 * mib, 2, volume64.copy(slots = Some(9)), 16),
    ("no more than the maximum", 200 * gib, 1600, volume64.copy(maxParallelism = 1000), 512),
    ("the minimum is likely where less would do", 0, 1, volume64.copy(minParallelism = 5), 16),
    ("no more blocks than a shuffle may have", 200 * gib, 1600, volume64.copy(maxBlocksPerShuffle = 1L << 20), 512),
    ("at least one subpartition", gib, 1000, volume64.copy(maxBlocksPerShuffle = 10), 1),
    ("eight times with balanced ranges", gib, 8, volume64.copy(balanced = true), 128),
    ("as many as a set number of tasks", gib, 8, volume64.copy(parallelism = Some(150)), 150),
    ("room to balance them", gib, 8, volume64.copy(parallelism = Some(150), balanced = true), 2048),
    ("absurd bytes", Long.MaxValue, Long.MaxValue, volume64, 1),
    ("no end of bytes", Long.MaxValue, 1, volume64, 32768)
  )

  forAll(cases) { (name, bytes, mapTasks, policy, expected) =>
    test(s"$name: $expected")(assert(SubpartitionCount.of(bytes, mapTasks, policy) == expected))
  }

  test("where nothing is known Spark's number is lowered to a power of two, but not below what somebody asks for") {
    assert(SubpartitionCount.unestimated(200, volume64) == 128)
    assert(SubpartitionCount.unestimated(200, volume64.copy(parallelism = Some(150))) == 150)
    assert(SubpartitionCount.unestimated(200, volume64.copy(minParallelism = 300)) == 512)
  }

  test("the subpartitions that would be filled if there were fewer of them") {
    val bytes = Array[Long](0, 9, 0, 0, 0, 9, 9, 0, 0, 9, 0, 0)
    assert(SubpartitionCount.filled(bytes, 12) == 4)
    assert(SubpartitionCount.filled(bytes, 6) == 4)
    assert(SubpartitionCount.filled(bytes, 4) == 2)
    assert(SubpartitionCount.filled(bytes, 1) == 1)
    assert(SubpartitionCount.filled(new Array[Long](12), 4) == 0)
    assert(math.abs(SubpartitionCount.filled(bytes, 5) - 5 * (1 - math.pow(0.8, 4))) < 1e-9)
  }
}
