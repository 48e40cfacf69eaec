package io.apportion.outcomes

import io.apportion.history.StageRun
import io.apportion.report.{DecisionRecord, Outcome}
import org.scalatest.funsuite.AnyFunSuite

/** What a run shows for the next one. */
class MemoryNeedSuite extends AnyFunSuite {
  private def learn(
      before: Option[StageRun],
      spilled: Long = 0,
      failures: Int = 0,
      millis: Long = 0,
      stored: Long = 1000
  ): Option[StageRun] = {
    val decision = DecisionRecord.unchanged("a test", 64, Array.fill(2)(stored / 2)).copy(taskMemory = Some(500))
    val metrics = StageMetrics(Outcome(0, spilled, 400, 0, 0, 0, 0, failures, failures), 5000, millis)
    MemoryNeed.learn(before, stored, decision, metrics, isTimed = true)
  }

  test("a spill of up to 5 % of the input shows nothing") {
    assert(learn(None, spilled = 50).isEmpty)
    assert(learn(None, spilled = 51).exists(_.memoryPerByte == 5))
  }

  test("a second spill of more than half of the first shows that more tasks do not help") {
    val first = learn(None, spilled = 400)
    assert(learn(first, spilled = 199).exists(_.helps))
    val second = learn(first, spilled = 201).get
    assert(!second.helps && MemoryNeed.textOf(second).exists(_.endsWith("more tasks did not help")))
  }

  test("a failure asks for four times the tasks, and a third one in a row for no more") {
    val first = learn(None, failures = 1)
    assert(first.exists(run => run.helps && run.memory == 500 * 2 * 4))
    val third = learn(learn(first, failures = 1), failures = 1)
    assert(third.exists(run => !run.helps && run.failures == 3))
  }

  test("a run with enough memory keeps what the run before needed, and ends the failures in a row") {
    val spilled = learn(None, spilled = 400)
    assert(learn(spilled).isEmpty)
    val failedTwice = learn(learn(None, failures = 1), failures = 1)
    val after = learn(failedTwice)
    assert(after.exists(run => run.failures == 1 && run.memory == 4000))
    assert(MemoryNeed.textOf(after.get).contains("an earlier run with 2 tasks ran out of memory"))
  }

  test("the run time of tasks of 200 ms and more shows how much a task reads in a time") {
    assert(learn(None, millis = 399).isEmpty)
    assert(learn(None, millis = 400).flatMap(_.bytesIn(1000)).contains(2500L))
  }

  test("the run time of a later run is kept for the bytes of the run that showed the memory") {
    val spilled = learn(None, spilled = 400, millis = 2000)
    val later = learn(spilled, millis = 800, stored = 2000).get
    assert(later.memoryPerByte == spilled.get.memoryPerByte)
    assert(later.bytesIn(1000).contains(2500L))
  }
}
