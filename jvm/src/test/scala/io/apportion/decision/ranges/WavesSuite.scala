package io.apportion.decision.ranges

import scala.util.Random

import io.apportion.decision.{Decider, Input, Kind, Policy, Rounding}
import org.scalatest.funsuite.AnyFunSuite

/** Stages priced as [[Waves.price]] does: bytes, 4 MiB a wave and 32 KiB a task. */
class WavesSuite extends AnyFunSuite {
  private val MiB = 1L << 20

  private def policy(slots: Int, rounding: Rounding) =
    Policy(dataVolumePerTask = 64 * MiB, balanced = true, rounding = rounding, steadySlots = Some(slots))

  private def priced(bytes: Array[Long], slots: Int, rounding: Rounding): Double =
    Waves.price(Decider.decide(Seq(new Input(bytes)), policy(slots, rounding)).taskBytes, slots)

  /** A stage of so many waves, with subpartitions of unequal sizes. */
  private def stage(random: Random, slots: Int, waves: Double): Array[Long] = {
    val weights = Array.fill(4 * slots)(0.5 + random.nextDouble())
    val scale = waves * slots * 64 * MiB / weights.sum
    weights.map(weight => (scale * weight).toLong)
  }

  test("a price adds the largest task of each wave, the cost of the waves and the cost of the launches") {
    val price = Waves.price(Array(5, 7, 3), slots = 2)
    assert(price == 7 + 3 + 2.0 * Waves.WaveCost + 3.0 * Waves.LaunchCost)
  }

  test("200 tasks on 160 slots are rounded to 160, which take one wave") {
    val bytes = Array.fill(1600)(8 * MiB)
    val decision = Decider.decide(Seq(new Input(bytes)), policy(160, Rounding.Waves))
    assert((decision.raw, decision.parallelism, decision.kind) == ((200, 160, Kind.Waves)))
    assert(
      decision.sentence.toString.startsWith(
        "160 tasks: 12.5 GiB at 64 MiB per task makes 200, rounded to 160 for full waves on 160 slots"
      )
    )
  }

  test("rounding to waves never costs more than exact rounding in 1,000 random stages") {
    val random = new Random(7)
    for (_ <- 1 to 1000) {
      val slots = 10 + random.nextInt(1991)
      val bytes = stage(random, slots, 0.1 + 2 * random.nextDouble())
      assert(priced(bytes, slots, Rounding.Waves) <= priced(bytes, slots, Rounding.Exact))
    }
  }

  test("rounding to waves costs at least a fifth less for stages of 1.05 to 1.4 waves") {
    val random = new Random(8)
    for (_ <- 1 to 200) {
      val slots = 10 + random.nextInt(1991)
      val bytes = stage(random, slots, 1.05 + 0.35 * random.nextDouble())
      assert(priced(bytes, slots, Rounding.Waves) <= 0.8 * priced(bytes, slots, Rounding.Exact))
    }
  }

  test("without steady slots, tasks are not rounded to waves, and the reason says so") {
    val decision = Decider.decide(
      Seq(new Input(Array.fill(100)(2 * MiB))),
      policy(160, Rounding.Waves).copy(steadySlots = None)
    )
    assert(decision.parallelism == 4)
    assert(
      decision.sentence.toString.endsWith("not rounded to waves, as the number of slots is unknown or may change.")
    )
  }

  test("an explicit parallelism is not rounded to waves") {
    val set = policy(160, Rounding.Waves).copy(parallelism = Some(200))
    assert(Decider.decide(Seq(new Input(Array.fill(1600)(8 * MiB))), set).parallelism == 200)
  }
}
