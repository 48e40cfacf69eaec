package org.apache.spark.apportion

import io.apportion.SparkSuite
import io.apportion.report.{DecisionLog, DecisionRecord}
import org.apache.spark.{SPARK_VERSION, SparkException}
import org.apache.spark.sql.{DataFrames, SparkSession}
import org.apache.spark.sql.catalyst.expressions.{Ascending, SortOrder}
import org.apache.spark.sql.catalyst.plans.logical.{RebalancePartitions, Sort}
import org.scalatest.prop.TableDrivenPropertyChecks._

/** Tasks with 9.6 MB of execution memory each, in which some operators spill and others fail. */
class SmallMemorySuite extends SparkSuite {
  // Half a million rows pay for the compilation.
  override protected def generatesCode: Boolean = true

  override protected def submitTimeConf: Map[String, String] =
    Map(
      "spark.testing.memory" -> (32 << 20).toString,
      "spark.testing.reservedMemory" -> "0",
      "spark.buffer.pageSize" -> "128k"
    )

  private val settings = Seq(
    "mode" -> "active",
    "spark.sql.shuffle.partitions" -> "64",
    "spark.sql.autoBroadcastJoinThreshold" -> "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold" -> "-1"
  )

  private val rows = "(SELECT id ^ 5 AS k, id AS v, id AS w FROM range(0, 500000, 1, 4))"

  /** The decision about the last stage of a query whose rows are thrown away. */
  private def run(session: SparkSession, query: String): DecisionRecord = {
    session.sql(query).write.format("noop").mode("overwrite").save()
    last(session)
  }

  private def last(session: SparkSession): DecisionRecord = {
    session.sparkContext.listenerBus.waitUntilEmpty()
    DecisionLog.of(session).all.last
  }

  private val queries = Table(
    ("operator", "query"),
    ("window", s"SELECT *, row_number() OVER (PARTITION BY k ORDER BY v) FROM $rows"),
    ("merge join", s"SELECT /*+ MERGE(b) */ a.*, b.v FROM $rows a JOIN $rows b ON a.k = b.k"),
    ("aggregate", s"SELECT k, max(v), max(w) FROM $rows GROUP BY k"),
    ("collect_list", s"SELECT k % 50000, collect_list(v) FROM $rows GROUP BY 1")
  )

  forAll(queries) { (operator, query) =>
    test(s"a $operator that spills without the limit spills nothing with it") {
      def spilled(enabled: Boolean): Long =
        withSession(settings :+ ("memory.enabled" -> enabled.toString): _*)(run(_, query).outcome.get.spilledBytes)
      assert(spilled(enabled = false) > 0)
      assert(spilled(enabled = true) == 0)
    }
  }

  test("map tasks of a large sort spill nothing, as under Spark, which opens a file for each of its partitions") {
    val query = "SELECT id, repeat('-', 120) AS line FROM range(0, 1000000, 1, 2) ORDER BY hash(id)"
    withSession("dataVolumePerTask" -> "1MB", "spark.sql.shuffle.partitions" -> "200") { session =>
      run(session, query)
      val writes = session.sparkContext.statusStore.stageList(null).filter(_.shuffleWriteRecords > 0)
      assert(writes.maxBy(_.stageId).memoryBytesSpilled == 0)
    }
  }

  test("a shuffled hash join that fails without the limit runs with it") {
    val query = s"SELECT /*+ SHUFFLE_HASH(b) */ a.k, b.* FROM $rows a JOIN $rows b ON a.k = b.k"
    withSession(settings :+ ("memory.enabled" -> "false"): _*) { session =>
      intercept[SparkException](run(session, query))
      // Before 4.2, a table with one long key fails with a general `SparkException`.
      if (SPARK_VERSION >= "4.2") assert(last(session).outcome.get.memoryFailures > 0)
    }
    withSession(settings: _*)(session => assert(run(session, query).outcome.get.memoryFailures == 0))
  }

  test("a partition size that the query asks for is not changed by memory") {
    val query = s"SELECT *, hash(k) FROM (SELECT /*+ REBALANCE(k) */ * FROM $rows) SORT BY v"
    withSession(settings: _*) { session =>
      val decision = run(session, query)
      assert(decision.tasks == 1 && decision.taskMemory.isEmpty)
    }
  }

  test("the advisory size of a table format's write is limited by memory") {
    def write(enabled: Boolean): DecisionRecord =
      withSession(settings :+ ("memory.enabled" -> enabled.toString): _*) { session =>
        val table = session.sql(s"SELECT * FROM $rows").queryExecution.analyzed
        val rebalance = RebalancePartitions(table.output.take(1), table, None, Some(1L << 30))
        val sorted = Sort(table.output.take(1).map(SortOrder(_, Ascending)), global = false, rebalance)
        DataFrames.of(session, sorted).write.format("noop").mode("overwrite").save()
        last(session)
      }
    val (without, limited) = (write(enabled = false), write(enabled = true))
    assert(without.tasks == 1 && without.outcome.get.spilledBytes > 0)
    assert(limited.tasks > 1 && limited.outcome.get.spilledBytes == 0)
    assert(limited.sources("dataVolumePerTask") == "advisory size of the write")
  }
}
