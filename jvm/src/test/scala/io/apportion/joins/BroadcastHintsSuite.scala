package io.apportion.joins

import io.apportion.SparkSuite
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanHelper
import org.apache.spark.sql.execution.joins.BroadcastHashJoinExec

/** Joins with a table whose size is known when its shuffle has finished. */
class BroadcastHintsSuite extends SparkSuite with AdaptiveSparkPlanHelper {
  private val atRunTime = Seq(
    "spark.sql.autoBroadcastJoinThreshold" -> "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold" -> "100KB"
  )

  private def isBroadcast(query: String, settings: (String, String)*): Boolean =
    withSession(atRunTime ++ settings: _*) { session =>
      val joined = session.sql(query)
      joined.collect()
      collect(joined.queryExecution.executedPlan) { case found: BroadcastHashJoinExec => found }.nonEmpty
    }

  private def keys(number: Int) = s"(SELECT id AS key FROM numbers WHERE id < $number)"

  for ((number, parallelism) <- Seq(50 -> 1, 300 -> 1, 60 -> 512)) {
    val setting = "minParallelism" -> parallelism.toString

    test(s"a table of $number keys is broadcast as under Spark with minParallelism=$parallelism") {
      val query = s"SELECT a.id, b.key FROM numbers a JOIN ${keys(number)} b ON a.id = 2 * b.key"
      assert(isBroadcast(query, "enabled" -> "false") && isBroadcast(query, setting))
    }

    test(s"a table is broadcast to an outer join with $number keys as under Spark with minParallelism=$parallelism") {
      val query = s"SELECT a.key, b.key FROM ${keys(number)} a LEFT JOIN ${keys(1000)} b ON a.key = 2 * b.key"
      assert(isBroadcast(query, "enabled" -> "false") && isBroadcast(query, setting))
    }
  }

  test("a table of few keys is shuffled as under Spark, although its groups of partitions are large") {
    for (number <- Seq(5, 30)) {
      val query = s"SELECT a.id, b.key FROM numbers a JOIN ${keys(number)} b ON a.id = 2 * b.key"
      assert(!isBroadcast(query, "enabled" -> "false") && !isBroadcast(query))
    }
  }

  test("partitions with rows are counted as if there were fewer partitions") {
    assert(BroadcastHints.filled(45, 256, 200) == 44)
    assert(BroadcastHints.filled(256, 256, 200) == 200)
    assert(BroadcastHints.filled(1, 8192, 200) == 1)
    assert(BroadcastHints.filled(500, 8192, 200) == 185)
    assert(BroadcastHints.filled(3, 200, 200) == 3)
  }
}
