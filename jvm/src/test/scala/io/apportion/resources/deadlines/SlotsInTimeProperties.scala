package io.apportion.resources.deadlines

import io.apportion.history.{QueryCost, StageCost}
import org.scalacheck.Gen
import org.scalatest.funsuite.AnyFunSuite
import org.scalatestplus.scalacheck.ScalaCheckPropertyChecks

class SlotsInTimeProperties extends AnyFunSuite with ScalaCheckPropertyChecks {

  private def stage(place: Int): Gen[StageCost] = for {
    tasks <- Gen.choose(1, 60)
    mean <- Gen.choose(0L, 200L)
    skew <- Gen.choose(1L, 4L)
    delay <- Gen.choose(0L, 50L)
    after <- Gen.someOf(0 until place)
  } yield {
    val millis = mean * tasks
    StageCost(tasks, millis, (mean * skew).min(millis), delay, after.toSeq)
  }

  private val stages: Gen[Seq[StageCost]] =
    Gen.choose(1, 6).flatMap(n => Gen.sequence[Seq[StageCost], StageCost]((0 until n).map(stage)))

  private val left = Gen.choose(0L, 5000L)
  private val most = Gen.choose(1, 200)

  private def slotsIn(stages: Seq[StageCost], left: Long, most: Int) =
    SlotsInTime.of(stages, left, SlotSupply(most))

  private def end(stages: Seq[StageCost], slots: Int) = ListSchedule.end(stages, SlotSupply(slots))

  test("a later deadline never needs more slots") {
    forAll(stages, left, left, most) { (stages, one, other, most) =>
      val (early, late) = (slotsIn(stages, one.min(other), most), slotsIn(stages, one.max(other), most))
      assert(late.slots <= early.slots)
      assert(late.inTime || !early.inTime)
    }
  }

  test("there are never more slots than allowed or useful") {
    forAll(stages, left, most) { (stages, left, most) =>
      val found = slotsIn(stages, left, most)
      assert(found.slots >= 1 && found.slots <= most && found.slots <= ListSchedule.mostAtOnce(stages))
    }
  }

  test("the stages end in time on these slots, and on no smaller candidate") {
    forAll(stages, left, most) { (stages, left, most) =>
      val found = slotsIn(stages, left, most)
      assert(found.millis == end(stages, found.slots))
      if (found.inTime) {
        assert(found.millis <= left)
        val soonest = end(stages, ListSchedule.mostAtOnce(stages).min(most))
        for (fewer <- SlotsInTime.candidates(found.slots).init)
          assert(end(stages, fewer) > left.max((soonest * 1.1).toLong))
      }
    }
  }

  test("if no number is enough, the stages end nearly as early as possible") {
    forAll(stages, most) { (stages, most) =>
      val found = slotsIn(stages, 0, most)
      assert(found.millis <= end(stages, ListSchedule.mostAtOnce(stages).min(most)) * 1.1)
      assert(found.inTime == (found.millis == 0))
    }
  }

  test("candidates are every number up to 32 and then differ by at most a sixteenth") {
    assert(SlotsInTime.candidates(40) == (1 to 32) ++ Seq(34, 36, 38, 40))
    val many = SlotsInTime.candidates(30000)
    assert(many.last == 30000 && many.zip(many.tail).forall { case (one, next) => next <= one * 17.0 / 16 + 1 })
  }

  test("a plan leaves time for the end of the query, and for runs that take longer") {
    val work = QueryCost(Seq(StageCost(tasks = 100, millis = 100000, longest = 1000)), tail = 500)
    def slots(within: Long, elapsed: Long) =
      DeadlinePlan(within, elapsed, work).slots(SlotSupply(1000))
    assert(slots(within = 10500, elapsed = 0) == SlotsForDeadline(12, 9500, inTime = true))
    assert(slots(within = 11500, elapsed = 1000) == SlotsForDeadline(12, 10500, inTime = true))
    assert(!slots(within = 1000, elapsed = 0).inTime)
  }
}
