package io.apportion.resources

import io.apportion.decision.ResourceRequirement
import org.scalatest.funsuite.AnyFunSuite

/** What a query has still to do, as its stages and tasks begin and end. */
class LoadSuite extends AnyFunSuite {
  private val Query = 7L
  private val requirement = ResourceRequirement(1, 2, 8)

  private def tasksEnd(load: Load, stage: Int, count: Int): Unit =
    for (_ <- 1 to count) load.taskEnds(stage, None)

  test("the load has the tasks of the largest running stage") {
    val load = new Load
    load.jobStarts(Query, job = 0, now = 0)
    assert(load.tasksOf(Query) == 0, "a job whose stages have run before submits none of them again")
    load.stageStarts(Query, stage = 1, tasks = 16)
    load.stageStarts(Query, stage = 2, tasks = 4)
    assert(load.tasksOf(Query) == 16)
    tasksEnd(load, stage = 1, count = 16)
    assert(load.tasksOf(Query) == 4)
    load.stageEnds(2)
    assert(load.tasksOf(Query) == 0)
  }

  test("another attempt of a stage starts with all its tasks") {
    val load = new Load
    load.stageStarts(Query, stage = 1, tasks = 16)
    tasksEnd(load, stage = 1, count = 16)
    load.stageStarts(Query, stage = 1, tasks = 3)
    assert(load.tasksOf(Query) == 3)
  }

  test("the load has the running jobs, and the time since the first job started") {
    val load = new Load
    load.jobStarts(Query, job = 0, now = 100)
    load.jobStarts(Query, job = 1, now = 200)
    load.jobEnds(0)
    assert(load.jobsOf(Query) == Seq(1))
    assert(load.of(Query, requirement, slots = 2, now = 300).runningMillis == 200)
  }
}
