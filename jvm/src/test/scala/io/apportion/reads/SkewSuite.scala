package io.apportion.reads

import io.apportion.SparkSuite
import io.apportion.report.{DecisionLog, DecisionRecord}
import org.apache.spark.sql.{Row, SparkSession, SparkSessionExtensions}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.{PartialReducerPartitionSpec, SparkPlan, UndeclaredAggregateExec}
import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadExec, AdaptiveSparkPlanHelper}
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec
import org.apache.spark.sql.execution.exchange.ShuffleExchangeLike
import org.apache.spark.sql.execution.joins.SortMergeJoinExec

/** Queries over a few heavy keys: what may be split is split evenly, and what may not be says why. */
class SkewSuite extends SparkSuite with AdaptiveSparkPlanHelper {

  override protected def extension: SparkSessionExtensions => Unit = { extensions =>
    super.extension(extensions)
    extensions.injectQueryStagePrepRule(_ => Undeclared)
  }

  private val settings = Seq(
    "mode" -> "active",
    "rules.disabled" -> "PreferHashJoins",
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
    val rows = sortedRows(frame)
    (rows, collectWithSubqueries(frame.queryExecution.executedPlan) { case e: ShuffleExchangeLike => e }.size)
  }

  private def largestToMean(decision: DecisionRecord): Double =
    decision.largestTaskBytes.toDouble / decision.meanTaskBytes

  private val split: Seq[(String, String, String, Seq[(String, String)])] = Seq(
    ("a sort-merge join", "SortMergeJoin", joinOfAll, Nil),
    ("the right side of a sort-merge join", "SortMergeJoin", s"SELECT $summary FROM light JOIN heavy USING (k)", Nil),
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
      "the left side of an existence join",
      "SortMergeJoin",
      "SELECT count(*), max(word) FROM heavy WHERE k IN (SELECT k + 7 FROM light) OR word < 'a0'",
      Seq("dataVolumePerTask" -> "64KB")
    ),
    (
      "the left side of an existence join by hash tables",
      "ShuffledHashJoin",
      "SELECT count(*), max(word) FROM heavy WHERE k IN (SELECT /*+ SHUFFLE_HASH */ k + 7 FROM light) OR word < 'a0'",
      Seq("dataVolumePerTask" -> "64KB")
    ),
    (
      "a sort-merge join with balanced ranges",
      "SortMergeJoin",
      joinOfAll,
      Seq("ranges" -> "balanced")
    ),
    (
      "a sort-merge join, measured in bytes of rows",
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
      "a join below a script",
      "SortMergeJoin",
      "SELECT count(*), max(line) FROM (SELECT TRANSFORM(k, word, name) USING 'cat' AS (line) FROM heavy JOIN light USING (k))",
      Nil
    ),
    (
      "a join whose tasks are merged",
      "SortMergeJoin",
      s"SELECT $summary FROM (SELECT /*+ COALESCE(5) */ * FROM heavy JOIN light USING (k))",
      Nil
    ),
    (
      "a join below a limit for each word",
      "SortMergeJoin",
      s"""SELECT $summary FROM (
         |  SELECT word, name, row_number() OVER (PARTITION BY word ORDER BY k) AS place FROM heavy JOIN light USING (k))
         |WHERE place < 3""".stripMargin,
      Nil
    ),
    (
      "a join that becomes a broadcast join, without local reads",
      "BroadcastHashJoin",
      joinOfAll,
      Seq(
        "spark.sql.adaptive.autoBroadcastJoinThreshold" -> "1MB",
        "spark.sql.adaptive.localShuffleReader.enabled" -> "false"
      )
    )
  )

  for ((what, operator, query, more) <- split)
    test(s"skewed partitions are split: $what") {
      val decision = heaviest(query, more)
      assert(decision.operator == operator)
      assert(decision.layout == "skew")
      assert(decision.tasks <= decision.parallelism + 4)
      assert(largestToMean(decision) <= 1.25)
      assert(decision.reason.matches(".*, \\d+ tasks read parts of [12] skewed shuffle partitions?\\."))
    }

  test("a split by Spark is replaced by one that is best for all tasks together") {
    val bySpark = Seq(
      "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes" -> "2KB",
      "spark.sql.adaptive.skewJoin.skewedPartitionFactor" -> "2",
      "spark.sql.adaptive.advisoryPartitionSizeInBytes" -> "8KB"
    )
    val decision = heaviest(joinOfAll, bySpark)
    assert(decision.tasks <= decision.parallelism + 4 && largestToMean(decision) <= 1.25)
  }

  private val aggregate =
    "SELECT count(*), sum(n), max(last) FROM (SELECT size(collect_set(word)) AS n, max(word) AS last FROM heavy GROUP BY k)"

  private val whole: Seq[(String, String, Seq[(String, String)], String)] = Seq(
    (
      "an aggregate that declares no distribution, like Comet's",
      aggregate,
      Seq(Undeclared.Key -> "true", "spark.sql.adaptive.localShuffleReader.enabled" -> "false"),
      "UndeclaredAggregate may not work on parts of partitions"
    ),
    (
      "a rebalance below an aggregate that declares no distribution",
      aggregate.replace("FROM heavy", "FROM (SELECT /*+ REBALANCE(k) */ * FROM heavy)"),
      Seq(Undeclared.Key -> "true", "spark.sql.adaptive.optimizeSkewsInRebalancePartitions.enabled" -> "false"),
      ""
    ),
    (
      "a join below a repartition that Spark drops",
      "SELECT /*+ REPARTITION(k) */ k, word, name FROM heavy JOIN light USING (k)",
      Nil,
      "the result has to keep the partitions that the query asks for"
    ),
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
      "the right side of a left outer join",
      s"SELECT $summary FROM light LEFT JOIN heavy USING (k)",
      Nil,
      "the right side is read whole"
    ),
    (
      "a full outer join",
      s"SELECT $summary FROM light FULL JOIN heavy USING (k)",
      Nil,
      "a FULL OUTER JOIN reads both sides whole"
    ),
    (
      "two joins by one key",
      s"SELECT $summary FROM heavy JOIN light USING (k) JOIN (SELECT k, name AS other FROM light) USING (k)",
      Nil,
      ""
    ),
    (
      "a repartition by the user",
      "SELECT count(*), max(word) FROM (SELECT /*+ REPARTITION(k) */ * FROM heavy)",
      Nil,
      "the rows of a partition must stay together"
    ),
    (
      "a join while spark.sql.adaptive.skewJoin.enabled is false",
      joinOfAll,
      Seq("spark.sql.adaptive.skewJoin.enabled" -> "false"),
      "spark.sql.adaptive.skewJoin.enabled is false"
    )
  )

  for ((what, query, more, why) <- whole)
    test(s"skewed partitions are not split: $what") {
      val decision = heaviest(query, more)
      assert(decision.layout == "even")
      assert(
        decision.reason.matches(s".*, \\d+ skewed shuffle partitions? not split, as .*$why\\."),
        decision
      )
    }

  test("a split by spark.sql.adaptive.forceOptimizeSkewedJoin stays") {
    val forced = Seq(
      "dataVolumePerTask" -> "64MB",
      "adaptiveWrites" -> "false",
      "spark.sql.adaptive.forceOptimizeSkewedJoin" -> "true",
      "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes" -> "2KB",
      "spark.sql.adaptive.skewJoin.skewedPartitionFactor" -> "2",
      "spark.sql.adaptive.advisoryPartitionSizeInBytes" -> "8KB"
    )
    val query =
      "SELECT heavy.k, count(DISTINCT word), max(name) FROM heavy JOIN light ON heavy.k = light.k GROUP BY heavy.k"
    withSession(settings ++ forced: _*) { session =>
      val frame = session.sql(query)
      val rows = sortedRows(frame)
      val plan = frame.queryExecution.executedPlan
      val joins = collect(plan) { case join: SortMergeJoinExec => join }
      assert(joins.map(_.isSkewJoin) == Seq(true))
      val parts = collect(plan) { case read: AQEShuffleReadExec => read.partitionSpecs }.flatten
      assert(parts.exists(_.isInstanceOf[PartialReducerPartitionSpec]))
      val kept = DecisionLog.of(session).all.map(_.reason).filter(_.contains("forceOptimizeSkewedJoin is true"))
      assert(kept.size == 1)
      session.conf.set("spark.apportion.enabled", "false")
      assert(rows == sortedRows(session.sql(query)))
    }
  }
}

/** Puts an aggregate that declares no distribution in place of Spark's final ones, as Comet does. */
private object Undeclared extends Rule[SparkPlan] {
  val Key = "spark.test.undeclared"

  override def apply(plan: SparkPlan): SparkPlan =
    if (conf.getConfString(Key, "false") != "true") plan
    else
      plan.transformUp {
        case aggregate: BaseAggregateExec if aggregate.requiredChildDistributionExpressions.exists(_.nonEmpty) =>
          UndeclaredAggregateExec(aggregate, aggregate.child)
      }
}
