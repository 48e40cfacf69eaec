package io.apportion.writes

import io.apportion.decision.{Input, Policy, SourceKind, ValueSource}
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.prop.TableDrivenPropertyChecks._

/** The bytes that each task reads, with a target of 100 bytes. */
class FileLayoutSuite extends AnyFunSuite {
  private val policy = Policy(100, balanced = true, rounding = io.apportion.decision.Rounding.Exact, minTaskVolume = 1)
    .withVolume(100, ValueSource(SourceKind.Write, "write.targetFileSize"))

  private val whole = Table(
    ("shuffle partitions", "tasks"),
    (Seq(100L, 100L, 100L), Seq(100L, 100L, 100L)),
    (Seq(50L, 50L, 40L, 60L), Seq(100L, 100L)),
    // The number of files is rounded to the nearest one.
    (Seq.fill(14)(10L), Seq(140L)),
    (Seq.fill(16)(10L), Seq(80L, 80L)),
    // A large partition does not change the size of other tasks.
    (Seq(50L, 50L, 1000L, 50L, 50L), Seq(100L, 1000L, 100L)),
    (Seq(0L, 0L, 100L, 0L), Seq(100L)),
    (Seq(0L, 500L, 0L, 0L, 500L, 0L), Seq(500L, 500L)),
    (Seq(0L, 0L), Seq(0L))
  )

  test("tasks read whole partitions of about the target size") {
    forAll(whole) { (bytes, expected) =>
      val decision = FileLayout.decide(Seq(new Input(bytes.toArray)), policy)
      assert(decision.taskBytes.toSeq == expected)
      assert(decision.ranges.toSeq.flatMap { case (from, until) => from until until } == bytes.indices)
    }
  }

  private val split = Table(
    ("map outputs of each partition", "tasks"),
    (Seq(Seq(50L, 50L), Seq(100L, 100L, 100L)), Seq(100L, 100L, 100L, 100L)),
    // 160 bytes make two files, but 120 bytes one.
    (Seq(Seq(80L, 80L), Seq(60L, 60L)), Seq(120L, 80L, 80L)),
    // There are not more parts than map outputs.
    (Seq(Seq(500L, 500L)), Seq(500L, 500L)),
    (Seq(Seq(1000L)), Seq(1000L))
  )

  test("tasks read parts of partitions that are too large, if operators allow it") {
    forAll(split) { (outputs, expected) =>
      val input = new Input(
        outputs.map(_.sum).toArray,
        mapTasks = outputs.head.size,
        blocks = Some(_.map(outputs(_).toArray))
      )
      assert(FileLayout.decide(Seq(input), policy).taskBytes.toSeq == expected)
    }
  }

  test("a set parallelism and the bounds of the session have priority") {
    val input = new Input(Array.fill(10)(100L))
    def tasks(policy: Policy) = FileLayout.decide(Seq(input), policy).tasks
    assert(tasks(policy) == 10)
    assert(tasks(policy.copy(parallelism = Some(3))) == 3)
    assert(tasks(policy.copy(maxParallelism = 4)) == 4)
  }

  private val limits = Table(
    ("files of tasks", "full file"),
    (Seq(50.0, 130.0), 135),
    // Files of 100 and 60 are better than files of 135 and 25.
    (Seq.fill(3)(160.0), 100),
    (Seq(1000.0), 125)
  )

  test("another file starts where the last file of a task is not too small") {
    forAll(limits)((tasks, size) => assert(math.round(RowLimit.of(tasks, 100)) == size))
  }

  test("tasks near the target write one file each, even if a few other tasks are too large") {
    assert(RowLimit.of(Seq.fill(90)(95.0) :+ 145.0, target = 100) > 95 * 1.05)
  }
}
