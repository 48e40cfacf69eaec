package io.apportion.keys

import java.io.{ByteArrayInputStream, ByteArrayOutputStream, ObjectInputStream, ObjectOutputStream}

import io.apportion.decision.ranges.Ranges
import org.apache.spark.unsafe.hash.Murmur3_x86_32
import org.scalacheck.Gen
import org.scalatest.funsuite.AnyFunSuite
import org.scalatestplus.scalacheck.ScalaCheckPropertyChecks

class EvenKeysSuite extends AnyFunSuite with ScalaCheckPropertyChecks {

  /** Where Spark puts a BIGINT: Murmur3 with the seed 42, modulo the number of subpartitions. */
  private def subpartitionOf(key: Long, subpartitions: Int): Int =
    Math.floorMod(Murmur3_x86_32.hashLong(key, 42), subpartitions)

  private def surrogate(key: Long, tasks: Int, subpartitions: Int): Long =
    EvenKeys.surrogate(key, tasks, EvenKeys.of(tasks, subpartitions))

  private def powersOfTwo(from: Int): Seq[Int] = (0 to 12).map(1 << _).filter(_ >= from)

  private val key = Gen.oneOf(Gen.long, Gen.choose(-1000L, 1000L), Gen.oneOf(Long.MinValue, Long.MaxValue))
  private val sizes = for {
    tasks <- Gen.oneOf(Gen.choose(1, 10000), Gen.choose(1, 100), Gen.const(EvenKeys.MostTasks))
    subpartitions <- Gen.oneOf(Gen.choose(tasks, Int.MaxValue), Gen.const(tasks), Gen.const(Int.MaxValue))
  } yield (tasks, subpartitions)

  test("task k mod p reads key k for p from 1 to 1,024, and n of p, 2p, 4p and powers of two up to 4,096") {
    val wrong = for {
      p <- (1 to 1024).iterator
      n <- (Seq(p, 2 * p, 4 * p) ++ powersOfTwo(from = p)).distinct
      ranges = Ranges.even(n, p)
      k <- 0 until p
      subpartition = subpartitionOf(surrogate(k.toLong, p, n), n)
      if subpartition < ranges.starts(k) || ranges.ends(k) <= subpartition
    } yield (k, p, n)
    assert(wrong.toList == Nil)
  }

  test("task k mod p reads any key k, even negative keys and the largest ones") {
    forAll(key, sizes) { case (k, (p, n)) =>
      val subpartition = subpartitionOf(surrogate(k, p, n), n)
      assert(EvenKeys.taskOf(subpartition, p, n) == Math.floorMod(k, p))
    }
  }

  test("keys less than p * 2^32 apart have different surrogates") {
    forAll(key, sizes, Gen.choose(1L, (1L << 32) - 1), Gen.choose(0.0, 1.0)) { case (k, (p, n), rounds, part) =>
      val apart = (rounds - 1) * p + (part * p).toLong.max(1L)
      whenever(k <= Long.MaxValue - apart) {
        assert(surrogate(k, p, n) != surrogate(k + apart, p, n))
      }
    }
  }

  test("surrogates fill another number of shuffle partitions about as evenly as other keys") {
    val used =
      (0L until 1000L).map(k => subpartitionOf(surrogate(k, 1000, 1000), 64)).groupBy(identity).values.map(_.size)
    assert(used.size == 64 && used.max < 2 * 1000 / 64)
  }

  test("tables are cached, and a table that is sent to an executor is the cached one") {
    val keys = EvenKeys.of(32768, 65536)
    assert(EvenKeys.of(32768, 65536) eq keys)
    val sent = new ByteArrayOutputStream
    new ObjectOutputStream(sent).writeObject(keys)
    assert(sent.size < 1000)
    assert(new ObjectInputStream(new ByteArrayInputStream(sent.toByteArray)).readObject().asInstanceOf[AnyRef] eq keys)
  }

  test("impossible numbers of tasks and shuffle partitions are refused") {
    for ((p, n) <- Seq((0, 5), (5, 4), (EvenKeys.MostTasks + 1, Int.MaxValue)))
      assertThrows[IllegalArgumentException](EvenKeys.of(p, n))
  }

  test("the task of each shuffle partition is the index of its even range") {
    for ((p, n) <- Seq((1, 1), (5, 5), (3, 8), (7, 64), (1000, 1001), (1024, 4096))) {
      val tasks =
        Ranges.even(n, p).toSeq.zipWithIndex.flatMap { case ((start, end), task) => Seq.fill(end - start)(task) }
      assert((0 until n).map(EvenKeys.taskOf(_, p, n)) == tasks)
    }
  }

  test("the largest possible shuffle partition has a task") {
    assert(EvenKeys.taskOf(Int.MaxValue - 1, Int.MaxValue, Int.MaxValue) == Int.MaxValue - 1)
  }
}
