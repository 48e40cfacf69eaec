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
    EarlierRuns.forget(spark.sparkContext)
    val fraction = 250000.0 / Cluster.recentTaskMemory(spark.sparkContext).get._1
    val settings = Seq("mode" -> "active", "subpartitions" -> "spark", "memory.fraction" -> fraction.toString)
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
    assert(run(20).tasks <= 2)
  }
}
