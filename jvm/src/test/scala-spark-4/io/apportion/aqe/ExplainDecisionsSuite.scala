package io.apportion.aqe

import java.io.ByteArrayOutputStream

import io.apportion.SparkSuite
import org.apache.spark.sql.DataFrame

/** What EXPLAIN says beside the plan. */
class ExplainDecisionsSuite extends SparkSuite {
  private val provider = "spark.sql.extendedExplainProviders" -> classOf[ExplainDecisions].getName
  private val query = "SELECT k, count(*) FROM numbers GROUP BY k"

  private def explained(frame: DataFrame): String = {
    val out = new ByteArrayOutputStream
    Console.withOut(out)(frame.explain("formatted"))
    out.toString
  }

  test("EXPLAIN shows the reasons of decisions after a query has run") {
    withSession(provider, "parallelism" -> "3") { session =>
      val frame = session.sql(query)
      frame.collect()
      val text = explained(frame)
      assert(text.contains("== Extended Information (Apportion) =="))
      assert(text.contains("HashAggregate: 3 tasks: parallelism is set to 3 (session setting), written in "))
    }
  }

  test("EXPLAIN shows the reasons for shuffle partitions before a query runs") {
    withSession(provider, "mode" -> "active") { session =>
      assert(
        explained(session.sql(query)).contains("Exchange: 256 shuffle partitions, spark.sql.shuffle.partitions, 200")
      )
      assert(
        session
          .sql(s"EXPLAIN FORMATTED $query")
          .head()
          .getString(0)
          .contains("Exchange: 256 shuffle partitions, spark.sql.shuffle.partitions, 200")
      )
    }
  }

  test("EXPLAIN shows nothing without shuffles or with enabled=false") {
    withSession(provider)(session => assert(!explained(session.sql("SELECT 1")).contains("shuffle partitions")))
    withSession(provider, "enabled" -> "false") { session =>
      val frame = session.sql(query)
      frame.collect()
      assert(!explained(frame).contains("tasks:"))
    }
  }
}
