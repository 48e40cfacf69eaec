package io.apportion.resources.deadlines

import io.apportion.history.{QueryCost, StageCost}
import org.scalatest.funsuite.AnyFunSuite

/** What stages have cost and what is left of a query, from the events of its stages and tasks. */
class QueryProgressSuite extends AnyFunSuite {
  private val (scan, dimension, join) = (0, 1, 2)

  /** A scan that writes shuffle 7, a broadcast, and the stage that reads both. Tasks take 100 ms. */
  private val earlier = QueryCost(
    Seq(
      StageCost(tasks = 4, millis = 400, longest = 100, delay = 10),
      StageCost(tasks = 1, millis = 100, longest = 100, delay = 10),
      StageCost(tasks = 2, millis = 200, longest = 100, delay = 20, after = Seq(0, 1))
    ),
    tail = 5
  )

  private final class Run(taskMillis: Long = 100) {
    val progress = new QueryProgress(start = 1000)
    progress.jobStarts(job = 0, writes = Seq(scan -> 7), now = 1000)

    def starts(stage: Int, tasks: Int, now: Long, parents: Int*): Run = {
      progress.stageStarts(stage, tasks, parents, now)
      this
    }

    def runs(stage: Int, tasks: Int): Run = {
      for (_ <- 1 to tasks) progress.taskEnds(stage, taskMillis)
      this
    }

    def ends(stage: Int, now: Long): Run = {
      progress.stageEnds(stage, now)
      this
    }
  }

  private def scanned(taskMillis: Long = 100): Run =
    new Run(taskMillis)
      .starts(scan, 4, now = 1010)
      .starts(dimension, 1, now = 1010)
      .runs(scan, 4)
      .runs(dimension, 1)
      .ends(dimension, now = 1110)
      .ends(scan, now = 1210)

  test("a stage waits for the shuffles that it reads, and for broadcasts that ended before") {
    val whole = scanned().starts(join, 2, now = 1230, scan).runs(join, 2).ends(join, now = 1330)
    assert(whole.progress.cost(now = 1335).contains(earlier))
  }

  test("no cost is known of a query without stages, or with a stage that has not ended") {
    assert(new Run().progress.cost(now = 2000).isEmpty)
    assert(scanned().starts(join, 2, now = 1230, scan).progress.cost(now = 2000).isEmpty)
  }

  test("before the first stage, the whole query is left") {
    assert(new QueryProgress(0).left(earlier) == earlier)
  }

  test("stages that have ended are not left, and nothing waits for them") {
    assert(scanned().progress.left(earlier) == QueryCost(Seq(earlier.stages(2).copy(after = Nil)), tail = 5))
  }

  test("of a running stage, the tasks that have not finished are left") {
    val half = scanned().starts(join, 2, now = 1230, scan).runs(join, 1)
    assert(half.progress.left(earlier).stages == Seq(StageCost(tasks = 1, millis = 100, longest = 100)))
  }

  test("a slower run corrects the times of what is left") {
    assert(scanned(taskMillis = 200).progress.left(earlier).stages.map(_.millis) == Seq(400))
    assert(scanned(taskMillis = 2000).progress.left(earlier).stages.map(_.millis) == Seq(800), "at most four times")
  }

  test("stages that start in another order are recognized by their tasks") {
    val swapped = new Run().starts(dimension, 1, now = 1010).runs(dimension, 1).ends(dimension, now = 1110)
    assert(swapped.progress.left(earlier).stages.map(_.tasks) == Seq(4, 2))
  }

  test("a stage that the earlier run did not have is left until it has ended") {
    val more = scanned().starts(join, 2, now = 1230, scan).starts(3, 50, now = 1230)
    assert(more.progress.left(earlier).stages.map(_.tasks) == Seq(2, 50))
  }

  test("another attempt of a stage is left until it has ended") {
    val again = scanned().starts(scan, 1, now = 1300)
    assert(again.progress.left(earlier).stages.map(_.tasks) == Seq(1, 2))
  }

  test("the largest stage is the one with most tasks among the stages that run") {
    val run = new Run()
    assert(run.progress.largestStage == 0, "a job whose stages have run before submits none of them again")
    run.starts(scan, 16, now = 1010).starts(dimension, 4, now = 1010)
    assert(run.progress.largestStage == 16 && run.progress.openTasks == 20)
    run.runs(scan, 16)
    assert(run.progress.largestStage == 4 && run.progress.openTasks == 4)
    run.ends(dimension, now = 1110)
    assert(run.progress.largestStage == 0 && run.progress.openTasks == 0)
  }

  test("another attempt of a stage starts with all its tasks") {
    val again = new Run().starts(scan, 16, now = 1010).runs(scan, 16).starts(scan, 3, now = 1300)
    assert(again.progress.largestStage == 3 && again.progress.openTasks == 3)
  }

  test("the progress has the running jobs, and the time since the first job started") {
    val run = new Run()
    run.progress.jobStarts(job = 1, writes = Nil, now = 1200)
    run.progress.jobEnds(0)
    assert(run.progress.jobs == Set(1) && run.progress.runningMillis(now = 1300) == 300)
  }

  test("costs grow with the input: more tasks of the same length") {
    assert(StageCost(tasks = 4, millis = 400, longest = 100).times(2.5) == StageCost(10, 1000, 100))
    assert(StageCost(tasks = 1, millis = 400, longest = 400).times(0.5) == StageCost(1, 200, 200))
  }
}
