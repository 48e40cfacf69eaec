package io.apportion.hints

import io.apportion.SparkSuite

/** Looking for hints takes no time in plans that have none, whatever other queries have. */
class HintMarkSuite extends SparkSuite {
  private val plain = "SELECT k, count(*) FROM numbers WHERE id > (SELECT avg(id) FROM few) GROUP BY k"

  test("a hint in one query leaves no marks in the plan of another") {
    withSession() { session =>
      val hinted = session.sql("SELECT /*+ PARALLELISM(5) */ k, count(*) FROM numbers GROUP BY k")
      hinted.collect()
      assert(HintMark.isIn(hinted.queryExecution.analyzed))
      val other = newSession().sql(plain)
      assert(!HintMark.isIn(other.queryExecution.analyzed))
      assert(QueryBlockFinder.placed(other.queryExecution.normalized).isEmpty)
    }
  }

  test("only operators that are not yet analyzed are searched for marks") {
    withSession() { session =>
      val hinted = session.sql("SELECT /*+ PARALLELISM(5) */ k FROM numbers").queryExecution.analyzed
      assert(HintMark.isBeingResolved(hinted))
      val above =
        session.sql("SELECT /*+ PARALLELISM(5) */ k FROM numbers").groupBy("k").count().queryExecution.analyzed
      assert(HintMark.isIn(above) && !HintMark.isBeingResolved(above))
    }
  }

  test("a mark in a subquery is found") {
    withSession() { session =>
      val query = "SELECT k FROM numbers WHERE id > (SELECT /*+ PARALLELISM(5) */ avg(id) FROM few)"
      assert(HintMark.isIn(session.sql(query).queryExecution.analyzed))
    }
  }
}
