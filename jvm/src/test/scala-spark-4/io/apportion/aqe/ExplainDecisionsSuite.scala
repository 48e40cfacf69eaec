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

  test("of a query that has run, why it was decided so") {
    withSession(provider, "parallelism" -> "3") { session =>
      val frame = session.sql(query)
      frame.collect()
      val text = explained(frame)
      assert(text.contains("== Extended Information (Apportion) =="))
      assert(text.contains("HashAggregate: 3 tasks: parallelism is set to 3 (session setting)."))
    }
  }

  test("of one that has not, what its subpartitions were made of") {
    withSession(provider, "mode" -> "active") { session =>
      assert(explained(session.sql(query)).contains("Exchange: 2 subpartitions, estimate of"))
      assert(
        session.sql(s"EXPLAIN FORMATTED $query").head().getString(0).contains("Exchange: 2 subpartitions, estimate of")
      )
    }
  }

  test("nothing without shuffles, and where Apportion is off") {
    withSession(provider)(session => assert(!explained(session.sql("SELECT 1")).contains("subpartitions")))
    withSession(provider, "enabled" -> "false") { session =>
      val frame = session.sql(query)
      frame.collect()
      assert(!explained(frame).contains("tasks:"))
    }
  }
}
