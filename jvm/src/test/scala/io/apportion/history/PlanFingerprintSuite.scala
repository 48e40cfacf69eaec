package io.apportion.history

import java.util.concurrent.TimeUnit

import io.apportion.SparkSuite
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec
import org.apache.spark.sql.execution.exchange.Exchange

/** Which plans are taken for the same. */
class PlanFingerprintSuite extends SparkSuite {
  private def plans(query: DataFrame): Seq[SparkPlan] = {
    val adaptive = query.queryExecution.executedPlan.collectFirst { case plan: AdaptiveSparkPlanExec => plan }.get
    val initial = adaptive.initialPlan
    query.collect()
    Seq(initial, adaptive.executedPlan)
  }

  private def fingerprintsWithLiterals(query: String, settings: (String, String)*): Set[PlanFingerprint] =
    withSession(settings: _*)(session => plans(session.sql(query)).map(PlanFingerprint.of).toSet)

  private def fingerprints(query: String, settings: (String, String)*): Set[String] =
    fingerprintsWithLiterals(query, settings: _*).map(_.plan)

  private val join =
    "SELECT a.k, count(*) FROM numbers a JOIN few b ON a.id = b.id AND a.k = b.k WHERE a.id <> 5 GROUP BY a.k"

  private val same: Seq[(String, String, Seq[(String, String)])] = Seq(
    ("no change", join, Nil),
    ("another literal", join.replace("5", "77"), Nil),
    (
      "another number of shuffle partitions",
      join,
      Seq("spark.sql.shuffle.partitions" -> "7", "adaptiveWrites" -> "false")
    ),
    ("a sort-merge join in place of a broadcast join", join, Seq("spark.sql.autoBroadcastJoinThreshold" -> "-1")),
    ("no code generation", join, Seq("spark.sql.codegen.wholeStage" -> "false")),
    ("other table aliases", join.replace("a.", "c.").replace(" a ", " c "), Nil)
  )
  for ((what, query, settings) <- same)
    test(s"a query has the same fingerprint, planned and run, with $what") {
      assert((fingerprints(join) ++ fingerprints(query, settings: _*)).size == 1)
    }

  for ((what, query, settings) <- same if query != join.replace("5", "77"))
    test(s"a query has the same digest of literals, planned and run, with $what") {
      assert((fingerprintsWithLiterals(join) ++ fingerprintsWithLiterals(query, settings: _*)).size == 1)
    }

  private val otherLiterals: Seq[(String, String, String)] = Seq(
    ("a literal in a filter", join, join.replace("5", "77")),
    ("literals in other places", join.replace("5", "5 AND a.k <> 6"), join.replace("5", "6 AND a.k <> 5")),
    (
      "a literal in a list",
      "SELECT count(*) FROM numbers WHERE k IN (1, 2, 3) GROUP BY id",
      "SELECT count(*) FROM numbers WHERE k IN (1, 2, 4) GROUP BY id"
    ),
    (
      "literals in a long list",
      s"SELECT count(*) FROM numbers WHERE k IN (${(1 to 50).mkString(", ")}) GROUP BY id",
      s"SELECT count(*) FROM numbers WHERE k IN (${(2 to 51).mkString(", ")}) GROUP BY id"
    ),
    (
      "a literal in a subquery",
      "SELECT count(*) FROM numbers WHERE k > (SELECT max(k) FROM few WHERE id < 7) GROUP BY id",
      "SELECT count(*) FROM numbers WHERE k > (SELECT max(k) FROM few WHERE id < 9) GROUP BY id"
    ),
    (
      "the number of a limit",
      "SELECT k, count(*) FROM (SELECT * FROM numbers LIMIT 50) GROUP BY k",
      "SELECT k, count(*) FROM (SELECT * FROM numbers LIMIT 60) GROUP BY k"
    ),
    (
      "the size of a range",
      "SELECT id % 7 AS k, count(*) FROM range(100) GROUP BY k",
      "SELECT id % 7 AS k, count(*) FROM range(200) GROUP BY k"
    )
  )
  for ((what, one, other) <- otherLiterals)
    test(s"other literals change only the digest of literals: $what") {
      val (ofOne, ofOther) = (fingerprintsWithLiterals(one), fingerprintsWithLiterals(other))
      assert((ofOne ++ ofOther).map(_.plan).size == 1)
      assert((ofOne.map(_.literals) intersect ofOther.map(_.literals)).isEmpty)
    }

  test("the digest of literals is too short to find the literals by trying") {
    assert(fingerprintsWithLiterals(join).forall(_.literals.matches("[0-9a-f]{6}")))
  }

  test("the fingerprints of a plan with many exchanges take little time") {
    val joins = (1 to 40).map(i => s"JOIN few t$i ON t0.id = t$i.k").mkString(" ")
    withSession("spark.sql.autoBroadcastJoinThreshold" -> "-1") { session =>
      val plan = session
        .sql(s"SELECT t0.id FROM few t0 $joins")
        .queryExecution
        .executedPlan
        .collectFirst { case plan: AdaptiveSparkPlanExec => plan }
        .get
        .initialPlan
      val exchanges = plan.collect { case exchange: Exchange => exchange }
      val start = System.nanoTime()
      exchanges.foreach(exchange => PlanFingerprint.of(exchange.child))
      assert(exchanges.size >= 40 && System.nanoTime() - start < TimeUnit.SECONDS.toNanos(2))
    }
  }

  private val different: Seq[(String, String)] = Seq(
    ("another table", join.replace("few", "(SELECT k, id * k AS id FROM few)")),
    ("another condition", join.replace("<>", ">")),
    ("another kind of join", join.replace("JOIN", "LEFT JOIN")),
    ("other keys", join.replace(" AND a.k = b.k", "")),
    ("other columns", join.replace("count(*)", "count(*), max(a.id)")),
    ("other groups", join.replace("BY a.k", "BY a.k, a.id"))
  )
  for ((what, query) <- different)
    test(s"a query has another fingerprint with $what")(
      assert((fingerprints(join) intersect fingerprints(query)).isEmpty)
    )

  test("lists of literals have the same fingerprint for any length") {
    def in(n: Int) = s"SELECT count(*) FROM numbers WHERE k IN (${(1 to n).mkString(", ")}) GROUP BY id"
    assert(Seq(3, 4, 50).map(in).flatMap(fingerprints(_)).distinct.size == 1)
  }
}
