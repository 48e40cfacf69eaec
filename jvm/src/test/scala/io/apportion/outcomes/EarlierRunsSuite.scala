package io.apportion.outcomes

import java.nio.file.Files

import io.apportion.SparkSuite
import io.apportion.report.{DecisionLog, DecisionRecord}
import org.apache.spark.apportion.Cluster
import org.scalatest.concurrent.Eventually
import org.scalatest.time.{Seconds, Span}

/** What an application learns from an earlier one. */
class EarlierRunsSuite extends SparkSuite with Eventually {
  implicit override val patienceConfig: PatienceConfig = PatienceConfig(timeout = Span(30, Seconds))

  override protected def submitTimeConf: Map[String, String] =
    Map(
      "spark.shuffle.spill.numElementsForceSpillThreshold" -> "5000",
      "spark.buffer.pageSize" -> "64k",
      "spark.apportion.history.path" -> Files.createTempDirectory("history").toString
    )

  /** Runs a query as a new application would. Its sort gets 100 rows for each row of the shuffle. */
  private def run(rows: Int): DecisionRecord = {
    EarlierRuns.inApplication.forget(spark.sparkContext)
    val fraction = 250000.0 / Cluster.recentTaskMemory(spark.sparkContext).get._1
    val settings = Seq("mode" -> "active", "memory.fraction" -> fraction.toString)
    withSession(settings :+ ("spark.sql.shuffle.partitions" -> "64"): _*) { session =>
      session
        .sql(s"""SELECT k, n, row_number() OVER (PARTITION BY k ORDER BY n DESC) FROM (
                |  SELECT k, explode(sequence(1, 100)) AS n
                |  FROM (SELECT id * 3 AS k, count(id) FROM numbers WHERE id < $rows GROUP BY 1))""".stripMargin)
        .collect()
      eventually(assert(DecisionLog.of(session).all.last.outcome.isDefined))
      DecisionLog.of(session).all.last
    }
  }

  test("the first run of an application gets the tasks that a spill in an earlier application shows") {
    val first = run(1000)
    assert(first.tasks == 1 && first.outcome.get.spilledBytes > 0)
    val second = run(1000)
    assert(second.tasks > 8, second.reason)
    // The bytes of a few rows are mostly the headers of their blocks, so they do not shrink by the factor of 50.
    val shrunk = run(20)
    assert(shrunk.tasks <= second.tasks / 8, shrunk.reason)
  }

  private def sorted(table: String) = s"SELECT id, id * 7 % 1000 AS v FROM $table SORT BY v"

  /** Scans files as a new application would, with a sort before any shuffle. */
  private def scan(table: String, fraction: Double): DecisionRecord =
    scanOf(s"SELECT v, size(collect_list(id)) FROM (${sorted(table)}) GROUP BY v", fraction)

  /** The decision about the only scan of a query. */
  private def scanOf(query: String, fraction: Double): DecisionRecord = {
    EarlierRuns.inApplication.forget(spark.sparkContext)
    withSession("memory.fraction" -> fraction.toString) { session =>
      session.sql(query).collect()
      def scans = DecisionLog.of(session).all.filter(_.layout == "files")
      eventually(assert(scans.forall(_.outcome.isDefined)))
      only(scans)
    }
  }

  /** Fraction of a task's memory that is 1 MiB. */
  private def little = (1 << 20).toDouble / Cluster.recentTaskMemory(spark.sparkContext).get._1

  test("a scan whose stage spilled gets the tasks that have enough memory in its next run") {
    spark.range(0, 200000, 1, 64).write.saveAsTable("spilling")
    try {
      val first = scan("spilling", little)
      assert(first.outcome.get.spilledBytes > 0 && first.tasks <= 4, first)
      val second = scan("spilling", little)
      assert(second.tasks >= 4 * first.tasks, second.reason)
      assert(second.reason.contains("an earlier run with"), second.reason)
      // The same need fits a larger memory.
      assert(scan("spilling", 0.99).tasks == first.tasks)
    } finally spark.sql("DROP TABLE spilling")
  }

  test("a scan keeps its tasks after a spill if its stage may write files") {
    spark.range(0, 200000, 1, 32).write.saveAsTable("written")
    try {
      val first = scanOf(sorted("written"), little)
      assert(first.outcome.get.spilledBytes > 0)
      assert(scanOf(sorted("written"), little).tasks == first.tasks)
    } finally spark.sql("DROP TABLE written")
  }

  test("a scan whose stage does not spill keeps its tasks") {
    spark.range(0, 2000, 1, 8).write.saveAsTable("harmless")
    try assert(Seq.fill(3)(scan("harmless", little)).map(_.tasks).distinct.size == 1)
    finally spark.sql("DROP TABLE harmless")
  }
}
