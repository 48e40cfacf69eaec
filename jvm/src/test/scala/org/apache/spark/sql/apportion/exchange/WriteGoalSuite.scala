package org.apache.spark.sql.apportion.exchange

import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.prop.TableDrivenPropertyChecks._

class WriteGoalSuite extends AnyFunSuite {
  private val MiB = 1L << 20
  private val goal =
    WriteGoal(64 * MiB, slots = 1, slotBytes = MiB, rowBytes = Long.MaxValue, minTasks = 1, maxFiles = 200)

  test("a sort has 4 ranges per task up to the number of shuffle partitions, and above that one per two tasks") {
    val counted = Table(
      ("bytes", "ranges"),
      (MiB, 1),
      (640 * MiB, 64),
      (64 * 200 * MiB, 256),
      (64 * 300 * MiB, 256),
      (64 * 600 * MiB, 512),
      (64 * 100000 * MiB, 8192)
    )
    forAll(counted)((bytes, ranges) => assert(goal.ranges(bytes, planned = 256) == ranges))
    assert(goal.ranges(64 * 100000 * MiB, planned = 16384) == 16384)
  }

  test("a sort has a range for each task that the memory needs") {
    assert(goal.copy(rowBytes = 64 * MiB).ranges(64 * 300 * MiB, planned = 256) == 512)
  }

  test("the first level has two groups, or as many as the number of tasks that is set needs") {
    val trees = Table(
      ("tasks", "groups"),
      (1, Seq(2, 16, 256)),
      (6, Seq(32, 256)),
      (10, Seq(64, 256)),
      (16, Seq(16, 256)),
      (300, Seq(256))
    )
    forAll(trees)((tasks, groups) => assert(goal.copy(minTasks = tasks).tree(256).groups.toSeq == groups))
  }

  test("a map task with many rows starts with the fewest groups that it will likely not have to divide") {
    val trees = Table(
      ("bytes", "groups", "start"),
      (0L, Seq(2, 16, 256), 2),
      (3 * MiB, Seq(2, 16, 256), 2),
      (100 * MiB, Seq(2, 16, 256), 16),
      (400 * MiB, Seq(2, 4, 32, 256), 32),
      (640 * MiB, Seq(2, 64, 256), 64),
      (1600 * MiB, Seq(2, 128, 256), 128),
      (6400 * MiB, Seq(2, 16, 256), 256)
    )
    forAll(trees) { (bytes, groups, start) =>
      val likely = goal.copy(likely = ShuffleSize(bytes, 2 * bytes))
      val tree = likely.tree(256)
      assert(tree.groups.toSeq == groups && tree.groups(likely.level(tree)) == start)
    }
  }

  test("a map task starts with groups whose rows will likely fit the memory of the tasks that read them") {
    val trees = Table(
      ("memory", "start"),
      (Long.MaxValue, 16),
      (80 * MiB, 16),
      (60 * MiB, 32),
      (20 * MiB, 64),
      (4 * MiB, 256)
    )
    forAll(trees) { (memory, start) =>
      val likely = goal.copy(rowBytes = memory, likely = ShuffleSize(100 * MiB, 250 * MiB))
      val tree = likely.tree(256)
      assert(tree.groups(likely.level(tree)) == start)
    }
  }

  test("map tasks open at most twice as many files as Spark by default, also if users let Spark open more") {
    val files = Table(
      ("maximum", "partitions", "opened"),
      (200, 256, true),
      (200, 512, false),
      (1000, 512, false),
      (1, 256, false)
    )
    forAll(files) { (most, partitions, opened) =>
      val limited = goal.copy(maxFiles = most)
      assert(limited.canOpenFiles(limited.tree(partitions)) == opened)
    }
  }

  test("there are as many groups as a task slot can read a part of, if the shuffle is small") {
    val small = goal.copy(slots = 64, likely = ShuffleSize(100 * MiB, 200 * MiB))
    assert(small.tree(256).groups.toSeq == Seq(2, 64, 256))
  }
}
