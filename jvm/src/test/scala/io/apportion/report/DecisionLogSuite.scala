package io.apportion.report

import io.apportion.decision.Sentence
import org.scalatest.funsuite.AnyFunSuite

class DecisionLogSuite extends AnyFunSuite {

  private def record(query: Long, settings: Map[String, String] = Map.empty) = DecisionRecord(
    query = Some(query),
    inputBytes = 1,
    broadcastBytes = 0,
    subpartitions = 1,
    parallelism = 1,
    tasks = 1,
    layout = "even",
    largestTaskBytes = 1,
    meanTaskBytes = 1,
    sources = settings,
    kind = "",
    sentence = Sentence("")
  )

  private def groups(log: DecisionLog): Seq[(Long, Int)] = log.all.map(one => one.query.get -> one.group)

  test("groups are numbered within their query, even if queries alternate") {
    val log = new DecisionLog
    assert(log.add(Seq(record(1), record(1))).map(_.group) == Seq(0, 1))
    log.add(Seq(record(2)))
    log.add(Seq(record(1)))
    assert(groups(log) == Seq(1L -> 0, 1L -> 1, 2L -> 0, 1L -> 2))
  }

  test("the oldest records are dropped, and only a query without records starts again at group 0") {
    val log = new DecisionLog(retained = 2)
    log.add(Seq(record(1), record(2), record(2), record(3)))
    assert(groups(log) == Seq(2L -> 1, 3L -> 0))
    log.add(Seq(record(2), record(1)))
    assert(groups(log) == Seq(2L -> 2, 1L -> 0))
  }

  test("records with equal sources share one map, even in different sessions") {
    def settings = Map("parallelism" -> "default", "ranges" -> new String("session setting"))
    val kept = Seq(new DecisionLog, new DecisionLog).map(_.add(Seq(record(1, settings))).head.sources)
    assert(kept.head eq kept.last)
    assert(kept.head == settings)
  }
}
