package io.apportion.resources.deadlines

import io.apportion.history.StageCost
import org.scalatest.funsuite.AnyFunSuite

class ListScheduleSuite extends AnyFunSuite {
  private def end(slots: Int, stages: StageCost*): Long = ListSchedule.end(stages, SlotSupply(slots))

  test("tasks of equal length run in waves") {
    val stage = StageCost(tasks = 8, millis = 800, longest = 100)
    assert(Seq(1, 3, 4, 7, 8, 20).map(end(_, stage)) == Seq(800, 300, 200, 200, 100, 100))
  }

  test("the longest task starts last, so it ends after the others") {
    val skewed = StageCost(tasks = 5, millis = 900, longest = 500)
    assert(Seq(1, 2, 4, 5).map(end(_, skewed)) == Seq(900, 700, 600, 500))
  }

  test("a stage waits for the stages that it reads, and for the driver") {
    val scan = StageCost(tasks = 2, millis = 200, longest = 100, delay = 10)
    val join = StageCost(tasks = 1, millis = 50, longest = 50, delay = 5, after = Seq(0, 1))
    assert(ListSchedule.of(Seq(scan, scan, join), SlotSupply(4)).map(_.start) == Seq(10, 10, 115))
    assert(end(4, scan, scan, join) == 165)
    assert(end(2, scan, scan, join) == 265)
  }

  test("stages that are ready first get the slots first") {
    val long = StageCost(tasks = 4, millis = 400, longest = 100)
    val short = StageCost(tasks = 1, millis = 10, longest = 10, delay = 1)
    assert(ListSchedule.of(Seq(long, short), SlotSupply(2)) == Seq(StageTimes(0, 200), StageTimes(200, 210)))
  }

  test("slots that start later run tasks later") {
    val stage = StageCost(tasks = 4, millis = 400, longest = 100)
    assert(ListSchedule.end(Seq(stage), SlotSupply(4, present = 1, startup = 50)) == 150)
    assert(ListSchedule.end(Seq(stage), SlotSupply(4, present = 1, startup = 1000)) == 400)
  }

  test("no more slots are useful than tasks that can run at the same time") {
    val scan = StageCost(tasks = 3, millis = 300, longest = 100)
    val join = StageCost(tasks = 10, millis = 100, longest = 10, after = Seq(0, 1))
    assert(ListSchedule.mostAtOnce(Seq(scan, scan, join)) == 10)
    assert(ListSchedule.mostAtOnce(Seq(scan, scan, join.copy(tasks = 2, millis = 20))) == 6)
    assert(ListSchedule.mostAtOnce(Nil) == 1)
  }

  test("a stage that waits for a later one is refused") {
    val error = intercept[IllegalArgumentException](end(1, StageCost(1, 1, 1, after = Seq(0))))
    assert(error.getMessage.contains("stage 0 waits for stage 0"))
  }
}
