package io.apportion.history

import org.scalatest.funsuite.AnyFunSuite

/** Predictions from recent runs. */
class RunsSuite extends AnyFunSuite {
  private def run(literals: String, stored: Long, at: Long, leafBytes: Long = 100): Run =
    Run(literals, stored, leafBytes, at)

  private def runs(all: Run*): Runs = all.foldLeft(Runs.none)(_.add(_))

  test("a run with other literals is not predicted") {
    assert(runs(run("b", 9000, 1), run("a", 1, 2)).predict("c", 100).isEmpty)
  }

  test("a run with the literals of earlier runs is predicted by the largest of these runs") {
    val known = runs(run("a", 9000, 1), run("b", 10, 2), run("b", 20, 3), run("b", 15, 4))
    assert(known.predict("b", 100) == Some(20))
  }

  test("no size is predicted without runs, or from runs that read much more or less") {
    assert(Runs.none.predict("a", 100).isEmpty)
    assert(runs(run("a", 10, 1)).predict("a", 801).isEmpty && runs(run("a", 10, 1)).predict("a", 12).isEmpty)
    assert(runs(run("a", 10, 1), run("a", 7, 2, leafBytes = 801)).predict("a", 801) == Some(7))
  }

  test("a predicted size scales with the bytes that are read now, if these are known") {
    assert(runs(run("a", 10, 1)).predict("a", 300) == Some(30))
    assert(runs(run("a", 10, 1)).predict("a", 0) == Some(10))
  }

  test("a run is kept unless it equals all earlier runs with its literals") {
    val one = runs(run("a", 1000, 1))
    assert(one.add(run("a", 1040, 2)) eq one)
    assert(one.add(run("a", 1100, 2)).recent.size == 2)
    assert(one.add(run("b", 1000, 2)).recent.size == 2)
    assert(one.add(run("a", 1000, 2, leafBytes = 200)).recent.size == 2)
  }

  private def writing(bytes: Long, at: Long): Run =
    run("", 1000, at).copy(stage = Some(StageRun(stored = 1000, tasks = 1, written = bytes, rows = 10)))

  test("a run of a statement is kept unless its files have about the same bytes") {
    val one = runs(writing(1000, 1))
    assert(one.add(writing(1040, 2)) eq one)
    assert(one.add(writing(1100, 2)).recent.size == 2)
  }

  private def costing(millis: Long, at: Long): Run =
    run("", 0, at).copy(query = Some(QueryCost(Seq(StageCost(tasks = 4, millis, longest = millis / 2)))))

  test("a query will cost as much as the median of its runs, scaled to the bytes that it reads now") {
    val known = runs(costing(100, 1), costing(900, 2), costing(200, 3), costing(300, 4))
    assert(known.cost(100).exists(_.millis == 200))
    assert(known.cost(200).map(_.stages).contains(Seq(StageCost(tasks = 8, millis = 400, longest = 100))))
    assert(known.cost(900).isEmpty && runs(run("a", 10, 1)).cost(100).isEmpty)
  }

  test("a run of a query is kept unless it costs about the same as earlier runs") {
    val one = runs(costing(1000, 1))
    assert(one.add(costing(1040, 2)) eq one)
    assert(one.add(costing(1100, 2)).recent.size == 2)
  }

  test("a large run is dropped after eight smaller runs") {
    val large = runs(run("a", 9000, 0))
    def after(n: Int) = (1 to n).foldLeft(large)((all, i) => all.add(run("a", 10, i.toLong)))
    assert(after(7).predict("a", 100) == Some(9000))
    assert(after(8).predict("a", 100) == Some(10))
    assert(after(20).recent.size == 8)
  }

  test("runs of several applications are merged by their time") {
    val (one, other) = (runs(run("a", 10, 1), run("b", 20, 4)), runs(run("c", 30, 2), run("d", 40, 3)))
    assert(one.add(other).recent.map(_.literals) == Seq("a", "c", "d", "b"))
    assert(one.add(one) eq one)
  }
}
