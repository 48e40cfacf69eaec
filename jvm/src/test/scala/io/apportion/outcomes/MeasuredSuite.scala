package io.apportion.outcomes

import io.apportion.memory.HeldRows
import io.apportion.report.{DecisionRecord, Outcome}
import org.scalatest.funsuite.AnyFunSuite

/** What a run that spilled or failed shows for the next one. */
class MeasuredSuite extends AnyFunSuite {
  private def decision(tasks: Int) =
    DecisionRecord.unchanged("a test", 64, Array.fill(tasks)(1000L)).copy(taskMemory = Some(500))

  private def outcome(spilled: Long = 0, failures: Int = 0) =
    Outcome(0, spilled, 400, 0, 0, 0, 0, failures, failures)

  private def spilling(before: Option[Measured], spilled: Long): Option[Measured] =
    Measured.of(before, 1000, decision(2), outcome(spilled), 5000)

  private def failing(before: Option[Measured]): Option[Measured] =
    Measured.of(before, 1000, decision(2), outcome(failures = 1), 5000)

  test("a spill of up to 5 % of the input shows nothing") {
    assert(spilling(None, 50).isEmpty)
    assert(spilling(None, 51).exists(_.ratio == 5))
  }

  test("a second spill of more than half of the first shows that more tasks do not help") {
    val first = spilling(None, 400)
    assert(spilling(first, 199).exists(_.helps))
    assert(spilling(first, 201).exists(run => !run.helps && run.text.endsWith("more tasks did not help")))
  }

  test("a failure asks for four times the tasks, and a third one in a row for no more") {
    val first = failing(None)
    assert(first.exists(run => run.helps && run.ratio == 500 * 2 * 4 / 1000.0))
    val third = failing(failing(first))
    assert(third.exists(run => !run.helps && run.failures == 3))
  }

  test("the measured memory counts only if it is more than the estimate") {
    val estimate = Seq(HeldRows(2), HeldRows(4))
    assert(Measured(3).orMore(estimate, Seq(100, 100)) == estimate)
    assert(Measured(3.5).orMore(estimate, Seq(100, 100)) == Seq(HeldRows(3.5), HeldRows(3.5)))
  }
}
