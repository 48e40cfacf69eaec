package io.apportion.outcomes

import java.lang.ref.WeakReference

import io.apportion.SparkSuite
import io.apportion.outcomes.OutcomeListener.Watched
import io.apportion.report.DecisionLog
import io.apportion.rules.LostQueries
import org.scalatest.concurrent.Eventually
import org.scalatest.time.{Seconds, Span}

/** What the listener keeps of queries. */
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
      eventually(assert(OutcomeListener.waitingQueries(spark.sparkContext).isEmpty))
    }

  test("a query whose end was lost is forgotten when another one runs") {
    val listener = new OutcomeListener(new WeakReference(spark.sparkContext), new LostQueries(_ => false, delay = -1))
    def stageOf(query: Long) =
      new Watched(query, Nil, None, new WeakReference(DecisionLog.of(spark)), false, _ => ())
    Seq(1L, 2L).foreach(query => listener.watch(stageOf(query)))
    assert(listener.waitingQueries == Set(2L))
  }
}
