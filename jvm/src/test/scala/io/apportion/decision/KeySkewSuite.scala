package io.apportion.decision

import org.scalatest.funsuite.AnyFunSuite

class KeySkewSuite extends AnyFunSuite {
  private val MiB = 1L << 20
  private val policy = Policy(dataVolumePerTask = 64 * MiB)

  private val cases = Seq[(String, Int, Seq[Long])](
    ("none beside a full one, where keys met", 1, Seq(8, 2, 4, 0, 4)),
    ("several", 3, Seq(9, 0, 0, 9, 0)),
    ("nothing to tell where all get something", 0, Seq(8, 1, 1, 1)),
    ("where none gets much more than its share", 0, Seq(5, 5, 5, 5, 0)),
    ("where all is in one task, which no key can change", 0, Seq(100, 0, 0, 0)),
    ("where nothing was written", 0, Seq(0, 0, 0)),
    ("where there is no task", 0, Seq())
  )

  for ((what, expected, sizes) <- cases)
    test(what) {
      assert(KeySkew.beside(sizes.map(_ * MiB).toArray, policy) == expected)
    }

  test("small tasks are not worth a word") {
    assert(KeySkew.beside(Array(8, 2, 0, 0).map(_ * MiB / 8), policy) == 0)
  }
}
