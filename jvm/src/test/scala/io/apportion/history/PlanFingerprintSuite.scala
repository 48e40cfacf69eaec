package io.apportion.history

import io.apportion.SparkSuite
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec

/** Which plans are taken for the same. */
class PlanFingerprintSuite extends SparkSuite {
  private def plans(query: DataFrame): Seq[SparkPlan] = {
    val adaptive = query.queryExecution.executedPlan.collectFirst { case plan: AdaptiveSparkPlanExec => plan }.get
    val initial = adaptive.initialPlan
    query.collect()
    Seq(initial, adaptive.executedPlan)
  }

  private def fingerprints(query: String, settings: (String, String)*): Set[String] =
    withSession(settings: _*)(session => plans(session.sql(query)).map(PlanFingerprint.of).toSet)

  private val join =
    "SELECT a.k, count(*) FROM numbers a JOIN few b ON a.id = b.id AND a.k = b.k WHERE a.id <> 5 GROUP BY a.k"

  private val same: Seq[(String, String, Seq[(String, String)])] = Seq(
    ("again", join, Nil),
    ("another literal", join.replace("5", "77"), Nil),
    ("another number of subpartitions", join, Seq("spark.sql.shuffle.partitions" -> "7", "subpartitions" -> "spark")),
    ("a sort-merge join in place of a broadcast one", join, Seq("spark.sql.autoBroadcastJoinThreshold" -> "-1")),
    ("without code generation", join, Seq("spark.sql.codegen.wholeStage" -> "false")),
    ("other names of the tables", join.replace("a.", "c.").replace(" a ", " c "), Nil)
  )
  for ((what, query, settings) <- same)
    test(s"the same, planned and run: $what") {
      assert((fingerprints(join) ++ fingerprints(query, settings: _*)).size == 1)
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
    test(s"not the same: $what")(assert((fingerprints(join) intersect fingerprints(query)).isEmpty))

  test("lists of literals count as one, however long") {
    def in(n: Int) = s"SELECT count(*) FROM numbers WHERE k IN (${(1 to n).mkString(", ")}) GROUP BY id"
    assert(Seq(3, 4, 50).map(in).flatMap(fingerprints(_)).distinct.size == 1)
  }
}
