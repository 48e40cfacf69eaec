package io.apportion.decision

import org.scalatest.funsuite.AnyFunSuite

class KeySkewSuite extends AnyFunSuite {
  private val MiB = 1L << 20
  private val policy = Policy(dataVolumePerTask = 64 * MiB)

  private val cases = Seq[(String, Int, Seq[Long])](
    ("an empty task beside a full one is counted", 1, Seq(8, 2, 4, 0, 4)),
    ("several empty tasks are counted", 3, Seq(9, 0, 0, 9, 0)),
    ("no task is counted if all tasks have bytes", 0, Seq(8, 1, 1, 1)),
    ("an empty task is not counted if no task is overloaded", 0, Seq(5, 5, 5, 5, 0)),
    ("empty tasks are not counted if one task has all bytes", 0, Seq(100, 0, 0, 0)),
    ("empty tasks are not counted if there are no bytes", 0, Seq(0, 0, 0)),
    ("a stage without tasks has no empty tasks", 0, Seq())
  )

  for ((what, expected, sizes) <- cases)
    test(what) {
      assert(KeySkew.emptyTasks(sizes.map(_ * MiB).toArray, policy) == expected)
    }

  test("empty tasks are not counted if all tasks are small") {
    assert(KeySkew.emptyTasks(Array(8, 2, 0, 0).map(_ * MiB / 8), policy) == 0)
  }
}
