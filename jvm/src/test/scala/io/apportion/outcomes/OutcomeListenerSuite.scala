package io.apportion.outcomes

import io.apportion.SparkSuite
import org.scalatest.concurrent.Eventually
import org.scalatest.time.{Seconds, Span}

/** What the listener keeps of queries. [[io.apportion.rules.LostQueriesSuite]] has queries whose end it does not hear. */
class OutcomeListenerSuite extends SparkSuite with Eventually {
  implicit override val patienceConfig: PatienceConfig = PatienceConfig(timeout = Span(30, Seconds))

  private val queries = Seq(
    "a query" -> "SELECT k, count(*) FROM numbers GROUP BY k",
    "a query whose tasks read no rows" -> "SELECT k, count(*) FROM numbers WHERE id < 0 GROUP BY k",
    "a query that fails" -> "SELECT k, count(*) FROM numbers GROUP BY k HAVING assert_true(k < 0) IS NULL"
  )

  for ((name, query) <- queries)
    test(s"nothing refers to the plan of $name after its end") {
      withSession()(session => util.Try(session.sql(query).collect()))
      eventually(assert(OutcomeListener.waitingQueries(spark.sparkContext) == 0))
    }
}
