package io.apportion.aqe

import io.apportion.SparkSuite
import io.apportion.report.{DecisionLog, DecisionRecord}
import org.apache.spark.sql.{Row, SparkSession}
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanHelper
import org.apache.spark.sql.execution.exchange.ShuffleExchangeLike

/** Queries over a few heavy keys: what may be split is split evenly, and what may not be says why. */
class SkewSuite extends SparkSuite with AdaptiveSparkPlanHelper {
  private val settings = Seq(
    "mode" -> "active",
    "dataVolumePerTask" -> "256KB",
    "spark.sql.autoBroadcastJoinThreshold" -> "-1",
    "spark.sql.shuffle.partitions" -> "32"
  )

  override protected def newSession(settings: (String, String)*): SparkSession = {
    val session = super.newSession(settings: _*)
    // A third of the rows have one of two keys.
    session
      .range(0, 30000, 1, 40)
      .selectExpr("CASE WHEN id % 3 > 0 THEN id % 2 ELSE id END AS k", "sha2(string(id), 256) AS word")
      .createOrReplaceTempView("heavy")
    session
      .range(0, 10000, 1, 4)
      .selectExpr("id AS k", "sha2(string(-id), 256) AS name")
      .createOrReplaceTempView("light")
    session
  }

  private val summary = "count(*), max(word), max(name), sum(length(name))"
  private val joinOfAll = s"SELECT $summary FROM heavy JOIN light USING (k)"
  private val byKey = "GROUP BY heavy.k"

  /** The decision about the stage that reads the heavy rows, and that results and exchanges are Spark's. */
  private def heaviest(query: String, more: Seq[(String, String)]): DecisionRecord =
    withSession(settings ++ more: _*) { session =>
      val before = DecisionLog.of(session).all.size
      val (rows, exchanges) = run(session, query)
      val decisions = DecisionLog.of(session).all.drop(before)
      session.conf.set("spark.apportion.enabled", "false")
      val (expected, most) = run(session, query)
      assert(rows == expected)
      assert(exchanges <= most)
      decisions.filter(_.subpartitions > 1).maxBy(_.inputBytes)
    }

  private def run(session: SparkSession, query: String): (Seq[Row], Int) = {
    val frame = session.sql(query)
    val rows = frame.collect().toSeq
    (rows, collectWithSubqueries(frame.queryExecution.executedPlan) { case e: ShuffleExchangeLike => e }.size)
  }

  private def largestToMean(decision: DecisionRecord): Double =
    decision.largestTaskBytes.toDouble / decision.meanTaskBytes

  private val split: Seq[(String, String, String, Seq[(String, String)])] = Seq(
    ("a sort-merge join", "SortMergeJoin", joinOfAll, Nil),
    ("its right side", "SortMergeJoin", s"SELECT $summary FROM light JOIN heavy USING (k)", Nil),
    (
      "a hash join of shuffles",
      "ShuffledHashJoin",
      s"SELECT /*+ SHUFFLE_HASH(light) */ $summary FROM heavy JOIN light USING (k)",
      Nil
    ),
    ("a left outer join", "SortMergeJoin", s"SELECT $summary FROM heavy LEFT JOIN light USING (k)", Nil),
    ("a right outer join", "SortMergeJoin", s"SELECT $summary FROM light RIGHT JOIN heavy USING (k)", Nil),
    ("a semi join", "SortMergeJoin", "SELECT count(*), max(word) FROM heavy LEFT SEMI JOIN light USING (k)", Nil),
    (
      "an anti join",
      "SortMergeJoin",
      "SELECT count(*), max(word) FROM heavy LEFT ANTI JOIN light ON heavy.k = light.k + 7",
      Nil
    ),
    (
      "with balanced ranges",
      "SortMergeJoin",
      joinOfAll,
      Seq("ranges" -> "balanced")
    ),
    (
      "measured in rows",
      "SortMergeJoin",
      joinOfAll,
      Seq("volume.measure" -> "estimated")
    ),
    (
      "a rebalance",
      "SortAggregate",
      "SELECT count(*), max(word) FROM (SELECT /*+ REBALANCE(k) */ * FROM heavy)",
      Nil
    ),
    (
      "a broadcast join, where nothing is read locally",
      "BroadcastHashJoin",
      joinOfAll,
      Seq(
        "spark.sql.adaptive.autoBroadcastJoinThreshold" -> "1MB",
        "spark.sql.adaptive.localShuffleReader.enabled" -> "false"
      )
    )
  )

  for ((what, operator, query, more) <- split)
    test(s"split: $what") {
      val decision = heaviest(query, more)
      assert(decision.operator == operator)
      assert(decision.layout == "skew")
      assert(decision.tasks <= decision.parallelism + 4)
      assert(largestToMean(decision) <= 1.25)
      assert(decision.reason.matches(".* for parts of [12] subpartitions? too large for one task\\."))
    }

  test("where Spark has split already, what is best for all tasks together counts") {
    val bySpark = Seq(
      "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes" -> "2KB",
      "spark.sql.adaptive.skewJoin.skewedPartitionFactor" -> "2",
      "spark.sql.adaptive.advisoryPartitionSizeInBytes" -> "8KB"
    )
    val decision = heaviest(joinOfAll, bySpark)
    assert(decision.tasks <= decision.parallelism + 4 && largestToMean(decision) <= 1.25)
  }

  private val whole: Seq[(String, String, Seq[(String, String)], String)] = Seq(
    (
      "an aggregate",
      "SELECT sum(n), max(last) FROM (SELECT size(collect_set(word)) AS n, max(word) AS last FROM heavy GROUP BY k)",
      Nil,
      "ObjectHashAggregate reads all rows of a key in one task"
    ),
    (
      "a window",
      "SELECT sum(n) FROM (SELECT row_number() OVER (PARTITION BY k ORDER BY word) AS n FROM heavy)",
      Nil,
      "Window reads all rows of a key in one task"
    ),
    (
      "a join below an aggregate by its key",
      s"SELECT sum(n) FROM (SELECT heavy.k, count(DISTINCT word) AS n, max(name) FROM heavy JOIN light ON heavy.k = light.k $byKey)",
      Nil,
      "HashAggregate reads all rows of a key in one task"
    ),
    (
      "the other side of an outer join",
      s"SELECT $summary FROM light LEFT JOIN heavy USING (k)",
      Nil,
      "the right side is read whole"
    ),
    (
      "a full join",
      s"SELECT $summary FROM light FULL JOIN heavy USING (k)",
      Nil,
      "full outer joins read both sides whole"
    ),
    (
      "a join that tells which rows exist on the other side",
      "SELECT max(word) FROM heavy WHERE k IN (SELECT k FROM light) OR word < 'a0'",
      Seq("dataVolumePerTask" -> "16KB"),
      "such joins read both sides whole"
    ),
    (
      "two joins by one key",
      s"SELECT $summary FROM heavy JOIN light USING (k) JOIN (SELECT k, name AS other FROM light) USING (k)",
      Nil,
      ""
    ),
    (
      "what the user repartitions",
      "SELECT count(*), max(word) FROM (SELECT /*+ REPARTITION(k) */ * FROM heavy)",
      Nil,
      "its rows have to stay together"
    ),
    (
      "switched off",
      joinOfAll,
      Seq("spark.sql.adaptive.skewJoin.enabled" -> "false"),
      "spark.sql.adaptive.skewJoin.enabled is false"
    )
  )

  for ((what, query, more, why) <- whole)
    test(s"not split: $what") {
      val decision = heaviest(query, more)
      assert(decision.layout == "even")
      assert(
        decision.reason.matches(s".*, with \\d+ subpartitions? too large for one task but not split, as .*$why\\."),
        decision
      )
    }
}
