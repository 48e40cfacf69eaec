package io.apportion.hints

import io.apportion.SparkSuite
import io.apportion.rules.Logged
import org.apache.spark.sql.{DataFrame, SparkSession}

/** The places in which the hint FINISH_WITHIN counts: the outermost block of a query. */
class FinishWithinSuite extends SparkSuite {
  private val hinted = "SELECT /*+ FINISH_WITHIN('90 sec') */ k, count(*) AS n FROM numbers GROUP BY k"

  private def seconds(query: DataFrame): Option[Int] =
    AssignBlocks.finishWithin(query.queryExecution.normalized).map(millis => (millis / 1000).toInt)

  private def inSession[A](body: SparkSession => A): A = withSession("hints.strict" -> "true")(body)

  for {
    (time, expected) <- Seq("1s" -> 1, "90 SEC" -> 90, "10 min" -> 600, " 2h " -> 7200, "365 days" -> 31536000)
  } test(s"a time with a unit is read: $time") {
    inSession(session => assert(seconds(session.sql(hinted.replace("90 sec", time))).contains(expected)))
  }

  for {
    (where, query) <- Seq(
      "a SELECT" -> hinted,
      "a SELECT with ORDER BY and LIMIT" -> s"$hinted ORDER BY n LIMIT 5",
      "the main query beside a common table expression" ->
        "WITH a AS (SELECT k FROM few) SELECT /*+ FINISH_WITHIN('90 s') */ * FROM a JOIN a b USING (k)",
      "a SELECT with another hint" -> hinted.replace("/*+", "/*+ PARALLELISM(4),")
    )
  } test(s"the hint counts in $where") {
    inSession(session => assert(seconds(session.sql(query)).contains(90)))
  }

  test("the hint counts on a DataFrame, and below operators that are added to it") {
    inSession { session =>
      assert(seconds(session.table("numbers").hint("finish_within", "90 s")).contains(90))
      assert(seconds(session.sql(hinted).filter("n > 1").orderBy("n")).contains(90))
    }
  }

  for {
    (where, query) <- Seq(
      "a subquery in FROM" -> s"SELECT * FROM ($hinted) a",
      "a common table expression" -> s"WITH a AS ($hinted) SELECT * FROM a JOIN few USING (k)",
      "one branch of a union" -> s"$hinted UNION ALL SELECT k, id FROM few",
      "one side of a join" -> s"SELECT * FROM few JOIN ($hinted) USING (k)"
    )
  } test(s"the hint does not count in $where, and the log says so") {
    val lines = Logged.by(classOf[AssignBlocks].getName) {
      inSession(session => assert(seconds(session.sql(query)).isEmpty))
    }
    assert(lines.size == 1 && lines.head.contains("is inside of another one"))
  }

  test("without the hint there is no deadline") {
    inSession(session => assert(seconds(session.table("numbers")).isEmpty))
  }
}
