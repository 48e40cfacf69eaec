package io.apportion.joins

import java.nio.file.Files

import io.apportion.SparkSuite
import io.apportion.report.{DecisionLog, DecisionRecord}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanHelper, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec
import org.apache.spark.sql.execution.joins.{BroadcastHashJoinExec, SortMergeJoinExec}
import org.scalatest.concurrent.Eventually
import org.scalatest.prop.TableDrivenPropertyChecks._
import org.scalatest.time.{Seconds, Span}

/** A driver of 64 MiB, which holds tables of up to 10.7 MiB. Spark broadcasts tables of up to 1 GiB. */
class DemoteBroadcastsSuite extends SparkSuite with AdaptiveSparkPlanHelper with Eventually {
  override protected def generatesCode: Boolean = true

  implicit override val patienceConfig: PatienceConfig = PatienceConfig(timeout = Span(30, Seconds))

  private val directory = Files.createTempDirectory("demote").toString

  override protected def submitTimeConf: Map[String, String] = Map(
    "spark.testing.memory" -> (64 << 20).toString,
    "spark.testing.reservedMemory" -> "0",
    "spark.apportion.history.path" -> s"$directory/history"
  )

  /** Spark plans a join of two shuffles, and broadcasts one of them as soon as it knows its size. */
  private val atRuntime =
    Seq("spark.sql.autoBroadcastJoinThreshold" -> "-1", "spark.sql.adaptive.autoBroadcastJoinThreshold" -> "1g")

  private val planned = Seq("spark.sql.autoBroadcastJoinThreshold" -> "1g")

  /** Operators of a query's joins, and the decision about the last one. */
  private def joins(session: SparkSession, query: String): (Seq[String], Option[DecisionRecord]) = {
    val frame = session.sql(query)
    frame.collect()
    val operators = collect(frame.queryExecution.executedPlan) {
      case _: BroadcastHashJoinExec => "broadcast"
      case _: SortMergeJoinExec     => "merge"
    }
    (operators, DecisionLog.of(session).all.lastOption)
  }

  private def joins(query: String, settings: (String, String)*): (Seq[String], Option[DecisionRecord]) =
    withSession(settings: _*)(joins(_, query))

  /** A row of these takes 64 bytes of a table. */
  private def rows(n: Int) = s"(SELECT id AS k, id * 2 AS v FROM range(0, $n, 1, 4))"
  private val few = "(SELECT id AS k FROM numbers WHERE id < 5)"

  test("a finished shuffle that does not fit the driver is not broadcast, and the reason says so") {
    val filtered = s"SELECT b.v FROM ${rows(900000)} a JOIN ${rows(800000)} b ON a.k = b.k WHERE b.v % 1000 = 0"
    val large = s"SELECT a.k FROM ${rows(900000)} a JOIN ${rows(800000)} b ON a.k = b.k + 700000"
    assert(joins(filtered, atRuntime: _*)._1 == Seq("broadcast"))
    val (operators, decision) = joins(large, atRuntime: _*)
    assert(operators == Seq("merge"))
    val reason = decision.get.reason
    assert(
      reason.matches(".*not a broadcast join, as a table of .* does not fit the driver's heap of 64 MiB.*"),
      reason
    )
  }

  private val kept = Table(
    ("case", "query", "settings"),
    (
      "the query asks for it",
      s"SELECT /*+ BROADCAST(b) */ a.k FROM ${rows(300000)} a JOIN ${rows(290000)} b ON a.k = b.k + 250000",
      atRuntime
    ),
    (
      "memory.enabled is false",
      s"SELECT a.k FROM ${rows(300000)} a JOIN ${rows(290000)} b ON a.k = b.k + 250000",
      atRuntime :+ ("memory.enabled" -> "false")
    ),
    (
      "Spark has no other join for NOT IN",
      s"SELECT k FROM $few WHERE k NOT IN (SELECT nullif(v, -1) FROM ${rows(400000)} DISTRIBUTE BY v)",
      planned
    )
  )

  forAll(kept) { (condition, query, settings) =>
    test(s"a broadcast that may not fit stays if $condition") {
      assert(joins(query, settings: _*)._1 == Seq("broadcast"))
    }
  }

  test("a small file with too many rows for the driver is not broadcast, unless a filter may leave few") {
    val files = s"$directory/many"
    spark.range(0, 500000, 1, 1).selectExpr("id AS k", "id % 2 AS a", "id % 3 AS b").write.parquet(files)
    val many = s"(SELECT k, a, b FROM parquet.`$files`)"
    def query(condition: String) =
      s"SELECT a.id, b.a, b.b FROM numbers a LEFT JOIN (SELECT * FROM $many $condition) b ON a.id = b.k"
    assert(joins(query(""), planned: _*)._1 == Seq("merge"))
    assert(joins(query("WHERE a = 0"), planned: _*)._1 == Seq("broadcast"))
    assert(joins(query(""), planned :+ ("memory.enabled" -> "false"): _*)._1 == Seq("broadcast"))
  }

  test("a broadcast that may not fit stays if it belongs to a scalar subquery, which has no merge join") {
    since("4.0")
    val files = s"$directory/scalar"
    spark.range(0, 500000, 1, 1).selectExpr("id AS k", "id % 2 AS a", "id % 3 AS b").write.parquet(files)
    val query = s"SELECT id, (SELECT a + b FROM parquet.`$files` f WHERE f.k = n.id) FROM numbers n WHERE id < 5"
    assert(joins(query, planned: _*)._1 == Seq("broadcast"))
  }

  test("tables that fit the driver one by one, but not together, are not all broadcast") {
    def table(name: String) = {
      spark.range(0, 160000, 1, 1).selectExpr("id AS k", s"id % 2 AS $name").write.parquet(s"$directory/$name")
      s"(SELECT k, $name FROM parquet.`$directory/$name`)"
    }
    val (one, other) = (table("one"), table("other"))
    def query(left: String, right: String) =
      s"SELECT a.id, b.*, c.* FROM numbers a LEFT JOIN $left b ON a.id = b.k LEFT JOIN $right c ON a.id + 1 = c.k"
    val (operators, decision) = joins(query(one, other), planned: _*)
    assert(operators.sorted == Seq("broadcast", "merge"))
    assert(decision.get.reason.contains("beside other tables of 9.8 MiB"), decision.get.reason)
    // Spark broadcasts one table for both joins.
    assert(joins(query(one, one), planned: _*)._1 == Seq("broadcast", "broadcast"))
  }

  test("the rows of a file are known while a shuffle of them runs, also where it is used again") {
    val files = s"$directory/shuffled"
    spark.range(0, 50000, 1, 2).write.parquet(files)
    withSession() { session =>
      val rows = s"(SELECT /*+ REPARTITION(3) */ * FROM parquet.`$files`)"
      val frame = session.sql(s"SELECT id % 7 FROM $rows GROUP BY 1 UNION ALL SELECT max(id) FROM $rows")
      frame.collect()
      val reads = collect(frame.queryExecution.executedPlan) {
        case stage: ShuffleQueryStageExec if stage.shuffle.numPartitions == 3 =>
          (stage.plan.isInstanceOf[ReusedExchangeExec], ParquetRows.of(stage, tooLarge = 1))
      }
      assert(reads.toSet == Set((false, Some(50000L)), (true, Some(50000L))))
    }
  }

  test("a broadcast that failed is not tried again with the same literals") {
    since("4.1")
    def queryFor(literal: Int) =
      s"SELECT a.k, b.v FROM numbers a LEFT JOIN (SELECT id AS k, id + $literal AS v FROM range(0, 5000, 1, 4)) b ON a.k = b.k"
    val query = queryFor(7)
    withSession(planned :+ ("spark.sql.maxBroadcastTableSize" -> "1KB"): _*) { session =>
      intercept[Exception](session.sql(query).collect())
      eventually {
        assert(joins(session, query)._1 == Seq("merge"))
      }
    }
    // With another literal, a filter may leave few rows.
    assert(joins(queryFor(9), planned: _*)._1 == Seq("broadcast"))
  }

  test("a table that grew too large since the last run is not broadcast") {
    val path = s"$directory/table"
    def write(rows: Int): Unit =
      spark.range(0, rows.toLong, 1, 4).selectExpr("id AS k", "id * 7 AS v").write.mode("overwrite").parquet(path)
    val query =
      s"SELECT a.k, b.v FROM numbers a LEFT JOIN parquet.`$path` b ON a.k = b.k"
    def run(): Seq[String] = joins(query, planned: _*)._1
    write(110000)
    assert(run() == Seq("broadcast"))
    write(770000)
    assert(run() == Seq("merge"))
    assert(joins(query, planned :+ ("rules.disabled" -> "DemoteBroadcasts"): _*)._1 == Seq("broadcast"))
  }
}
