package io.apportion.reads

import scala.collection.mutable

import io.apportion.SparkSuite
import io.apportion.report.{DecisionLog, DecisionRecord}
import org.apache.spark.sql.DataFrames
import org.apache.spark.sql.catalyst.plans.logical.RebalancePartitions
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadExec, AdaptiveSparkPlanHelper}
import org.scalatest.prop.TableDrivenPropertyChecks._

/** Real queries, and what is decided for their stages; and in how many subpartitions these are written. */
class DecideShuffleReadsSuite extends SparkSuite with AdaptiveSparkPlanHelper {
  private val active = "mode" -> "active"
  private val small = Seq(active, "dataVolumePerTask" -> "4KB")
  private val noBroadcast = "spark.sql.autoBroadcastJoinThreshold" -> "-1"

  /** Fewer than by default, for queries that run a task for each. */
  private val partitions = "spark.sql.shuffle.partitions" -> "40"

  /** operator: tasks of subpartitions, layout, kind */
  private def summary(record: DecisionRecord): String =
    s"${record.operator}: ${record.tasks} of ${record.subpartitions}, ${record.layout}, ${record.kind}"

  private val cases = Table[String, String, Seq[(String, String)], Seq[String]](
    ("case", "query", "settings", "decisions"),
    (
      "an aggregate is decided by its bytes",
      "SELECT k, count(*) FROM numbers GROUP BY k",
      Seq(active),
      Seq("HashAggregate: 1 of 256, even, formula")
    ),
    (
      "an explicit parallelism is used as given",
      "SELECT k, count(*) FROM numbers GROUP BY k",
      Seq("parallelism" -> "7"),
      Seq("HashAggregate: 7 of 256, even, explicit")
    ),
    (
      "a parallelism above Spark's number of shuffle partitions raises that number",
      "SELECT k, count(*) FROM numbers GROUP BY k",
      Seq("parallelism" -> "300"),
      Seq("HashAggregate: 300 of 1024, even, explicit")
    ),
    (
      "small stages use the slots in reactive mode",
      "SELECT k, count(*) FROM numbers GROUP BY k",
      Seq("mode" -> "reactive", "minTaskVolume" -> "1KB"),
      Seq("HashAggregate: 2 of 256, even, reactive")
    ),
    (
      "nothing is decided with enabled=false",
      "SELECT k, count(*) FROM numbers GROUP BY k",
      Seq("enabled" -> "false"),
      Seq.empty
    ),
    (
      "Spark's partitions stay if its coalescing is switched off",
      "SELECT k, count(*) FROM numbers GROUP BY k",
      Seq(active, partitions, "spark.sql.adaptive.coalescePartitions.enabled" -> "false"),
      Seq("HashAggregate: 40 of 40, unchanged, unchanged")
    ),
    (
      "a sort is decided",
      "SELECT id FROM numbers ORDER BY id",
      Seq(active, "parallelism" -> "8"),
      Seq("Sort: 8 of 32, even, explicit")
    ),
    (
      "both sides of a join are one group",
      "SELECT a.id FROM numbers a JOIN numbers b ON a.id = b.k",
      small :+ noBroadcast :+ ("parallelism" -> "16"),
      Seq("ShuffledHashJoin: 16 of 256, even, explicit")
    ),
    (
      "both sides of a shuffled hash join are one group",
      "SELECT /*+ SHUFFLE_HASH(b) */ a.id FROM numbers a JOIN few b ON a.id = b.k",
      small :+ noBroadcast :+ ("parallelism" -> "16"),
      Seq("ShuffledHashJoin: 16 of 256, even, explicit")
    ),
    (
      "a union separates groups",
      "SELECT k, count(*) FROM numbers GROUP BY k UNION ALL SELECT k, count(*) FROM few GROUP BY k",
      Seq("parallelism" -> "4"),
      Seq("HashAggregate: 4 of 256, even, explicit", "HashAggregate: 4 of 256, even, explicit")
    ),
    (
      "a union whose partitions are used above it does not separate groups",
      """SELECT k, sum(c) FROM (
        |  SELECT k, count(*) AS c FROM numbers GROUP BY k UNION ALL SELECT k, count(*) FROM few GROUP BY k) GROUP BY k""".stripMargin,
      Seq("parallelism" -> "4"),
      Seq("HashAggregate: 4 of 200, even, explicit")
    ),
    (
      "the number of a repartition stays",
      "SELECT /*+ REPARTITION(5) */ id FROM numbers",
      Seq(active),
      Seq("Output: 5 of 5, unchanged, unchanged")
    ),
    (
      "the number of a repartition by column stays",
      "SELECT /*+ REPARTITION(5, k) */ id, k FROM numbers",
      Seq(active),
      Seq("Output: 5 of 5, unchanged, unchanged")
    ),
    (
      "the number of a repartition stays if Spark drops the repartition",
      "SELECT /*+ REPARTITION(40, k) */ k, count(*) FROM numbers GROUP BY k",
      Seq(active, partitions),
      Seq("HashAggregate: 40 of 40, unchanged, unchanged")
    ),
    (
      "a repartition by column without a number is decided",
      "SELECT /*+ REPARTITION(k) */ id FROM numbers",
      Seq(active),
      Seq("Output: 1 of 256, even, formula")
    ),
    (
      "a rebalance is decided",
      "SELECT /*+ REBALANCE(k) */ id, k FROM numbers",
      Seq(active),
      Seq("Output: 1 of 256, even, formula")
    ),
    (
      "a rebalance is not spread over the slots",
      "SELECT /*+ REBALANCE(k) */ id, k FROM numbers",
      Seq("mode" -> "reactive", "minTaskVolume" -> "1KB"),
      Seq("Output: 1 of 256, even, formula")
    ),
    (
      "the number of a rebalance is its number of shuffle partitions",
      "SELECT /*+ REBALANCE(50, k) */ id, k FROM numbers",
      Seq("parallelism" -> "60"),
      Seq("Output: 50 of 50, even, subpartitions")
    ),
    (
      "a single partition stays a single partition",
      "SELECT count(*) FROM numbers",
      Seq(active),
      Seq("HashAggregate: 1 of 1, unchanged, unchanged")
    ),
    (
      "a window is decided",
      "SELECT id, row_number() OVER (PARTITION BY k ORDER BY id) FROM numbers",
      Seq("parallelism" -> "4"),
      Seq("Window: 4 of 256, even, explicit")
    ),
    (
      "a join that becomes a broadcast join at run time reads the other side locally, with the decided number",
      """SELECT a.id, b.m FROM numbers a LEFT JOIN (
        |  SELECT k, max(id) AS m FROM numbers GROUP BY k HAVING max(id) % 997 = 3) b ON a.id = b.m""".stripMargin,
      Seq("parallelism" -> "7", "spark.sql.autoBroadcastJoinThreshold" -> "20KB"),
      Seq(
        "HashAggregate: 7 of 256, even, explicit",
        "Output: 7 of 256, local, explicit",
        "BroadcastHashJoin: 7 of 256, local, explicit"
      )
    ),
    (
      "stages below a join that Spark drops for an empty side are decided",
      "SELECT a.k, count(*) FROM (SELECT * FROM numbers WHERE id < 0) a FULL JOIN few b ON a.k = b.k GROUP BY a.k",
      Seq(active, noBroadcast),
      Seq("HashAggregate: 1 of 256, even, formula", "HashAggregate: 1 of 256, even, formula")
    ),
    (
      "a subquery is decided",
      "SELECT k, count(*) FROM numbers WHERE id > (SELECT avg(c) FROM (SELECT count(*) AS c FROM few GROUP BY k)) GROUP BY k",
      Seq("parallelism" -> "4"),
      Seq(
        "HashAggregate: 4 of 256, even, explicit",
        "HashAggregate: 1 of 1, unchanged, unchanged",
        "HashAggregate: 4 of 256, even, explicit"
      )
    ),
    (
      "a join that multiplies rows has the target size minTaskVolume",
      "SELECT count(*) FROM (SELECT DISTINCT k FROM numbers) a JOIN few b ON a.k < b.k * 1000 GROUP BY a.k",
      Seq(active, "minTaskVolume" -> "1KB"),
      Seq("HashAggregate: 64 of 256, even, formula")
    )
  )

  private type Run = (Seq[String], Seq[DecisionRecord])

  /** Each case runs once, for the tests of its decisions and of its rows, and so does each query under Spark. */
  private val runs, runsOfSpark = mutable.Map.empty[String, Run]

  private def run(query: String, settings: (String, String)*): Run = withSession(settings: _*) { session =>
    val rows = session.sql(query).collect().map(_.toString).sorted.toSeq
    (rows, DecisionLog.of(session).all)
  }

  forAll(cases) { (name, query, settings, expected) =>
    test(name) {
      if (name == "a union whose partitions are used above it does not separate groups") since("4.1")
      val (_, decisions) = runs.getOrElseUpdate(name, run(query, settings: _*))
      assert(decisions.map(summary).sorted == expected.sorted)
    }
  }

  forAll(cases) { (name, query, settings, _) =>
    test(s"the rows are the same as without Apportion: $name") {
      val (rows, _) = runs.getOrElseUpdate(name, run(query, settings: _*))
      val (expected, _) = runsOfSpark.getOrElseUpdate(query, run(query, "enabled" -> "false"))
      assert(rows == expected)
    }
  }

  test("the reason says that Spark replaced the number of a repartition under a join") {
    withSession(active, partitions, noBroadcast) { session =>
      val (many, few) = (session.table("numbers"), session.table("few"))
      val joined = many.repartition(5, many("id")).join(few.repartition(9, few("id")), "id")
      assert(
        only(decisionsOf(session, joined)).reason ==
          "Unchanged: Spark gave 40 partitions to query stage 0 instead of the number that a repartition sets."
      )
    }
  }

  test("a record has as many tasks as the plan") {
    withSession("parallelism" -> "6", noBroadcast) { session =>
      val query =
        session.sql("SELECT a.k, count(*) FROM numbers a JOIN numbers b ON a.id = b.k GROUP BY a.k ORDER BY a.k")
      val recorded = decisionsOf(session, query).map(_.tasks)
      assert(recorded == Seq(6, 6, 6))
      assert(readsOf(query.queryExecution.executedPlan).forall(_.partitionSpecs.size == 6))
      assert(readsOf(query.queryExecution.executedPlan).size == 4)
    }
  }

  test("a decision has its numbers and their sources") {
    val decision = decisionOf("SELECT k, count(*) FROM numbers GROUP BY k", active, "dataVolumePerTask" -> "4KB")
    assert(decision.dataVolumePerTask.contains(4096L))
    assert(decision.broadcastCap.contains(2048L))
    assert(decision.raw.contains((decision.inputBytes + 4095) / 4096))
    assert(decision.ranges.size == decision.parallelism)
    assert(decision.ranges.starts.toSeq == (0 until decision.parallelism).map(_ * 256 / decision.parallelism))
    assert(decision.largestTaskBytes >= decision.meanTaskBytes && decision.meanTaskBytes > 0)
    assert(decision.sources("dataVolumePerTask") == "session setting")
    assert(decision.sources("broadcastRatio") == "default")
  }

  test("an advisory size below Spark's minimum size of a partition makes few tasks") {
    val query = "SELECT k, count(*) FROM numbers GROUP BY k"
    val decision = decisionOf(query, active, "spark.sql.adaptive.advisoryPartitionSizeInBytes" -> "64")
    assert(decision.parallelism == 8)
    assert(decision.dataVolumePerTask.contains(decision.inputBytes / 8))
    assert(decision.reason.contains("(Spark's advisory size is 64 B, below its minPartitionSize of 1 MiB)"))
    assert(decisionOf(query, active, "dataVolumePerTask" -> "2KB").parallelism > 8)
  }

  test("broadcasts count with the bytes of their rows, not with the 32 MiB array of their hash map") {
    val decision = decisionOf(
      "SELECT /*+ BROADCAST(b) */ a.k FROM (SELECT k, count(*) AS c FROM numbers GROUP BY k) a JOIN few b ON a.c = b.k",
      active
    )
    assert(decision.operator == "HashAggregate")
    assert(decision.broadcastBytes > 0 && decision.broadcastBytes <= 30 * 24)
  }

  test("the target size per task can count bytes of rows") {
    val query = "SELECT k, max(id) FROM (SELECT /*+ REPARTITION(k) */ * FROM numbers) GROUP BY k"
    val settings = Seq(active, "dataVolumePerTask" -> "24KB")
    val stored = decisionOf(query, settings: _*)
    val rows = decisionOf(query, settings :+ ("volume.measure" -> "estimated"): _*)
    assert(rows.inputBytes > 2 * stored.inputBytes)
    assert((stored.parallelism, rows.parallelism) == ((8, 16)))
    assert(rows.reason.matches("[0-9]+ tasks: [0-9.]+ KiB of rows \\(session setting\\) at 24 KiB per task .*"))
  }

  test("a rebalance with an advisory size, as in the write of a table format, is decided by that size") {
    withSession(active, "dataVolumePerTask" -> "1GB") { session =>
      val plan = RebalancePartitions(Nil, session.table("numbers").queryExecution.analyzed, None, Some(10000L))
      val decision = only(decisionsOf(session, DataFrames.of(session, plan)))
      assert(decision.dataVolumePerTask.contains(10000L))
      assert(decision.sources("dataVolumePerTask") == "advisory size of the write")
      assert(decision.parallelism > 1)
    }
  }

  test("a write is decided and keeps its result") {
    withSession("parallelism" -> "3") { session =>
      session.sql("CREATE TABLE written USING parquet AS SELECT k, count(*) AS c FROM numbers GROUP BY k")
      try {
        assert(DecisionLog.of(session).all.map(_.tasks) == Seq(3))
        assert(session.table("written").inputFiles.length == 3)
      } finally session.sql("DROP TABLE written")
    }
  }

  test("a cached plan is decided for the session that runs it, except for its last stage") {
    withSession("parallelism" -> "3", partitions, noBroadcast) { session =>
      val query = "SELECT a.k, count(*) AS c FROM numbers a JOIN numbers b ON a.id = b.k GROUP BY a.k"
      session.sql(s"CACHE TABLE cached AS $query")
      val decisions = DecisionLog.of(session).all.filter(_.subpartitions > 1).map(summary)
      session.sql("UNCACHE TABLE cached")
      assert(
        decisions == Seq(
          "ShuffledHashJoin: 3 of 64, even, explicit",
          "HashAggregate: 40 of 40, unchanged, unchanged"
        )
      )
    }
  }

  test("a reused exchange belongs to each group that reads it") {
    val decisions = decisionsOf(
      "WITH c AS (SELECT k, count(*) AS n FROM numbers GROUP BY k) SELECT * FROM c a JOIN c b ON a.n = b.k",
      "parallelism" -> "5",
      noBroadcast
    )
    assert(decisions.nonEmpty && decisions.forall(_.tasks == 5))
  }

  private def readsOf(plan: SparkPlan): Seq[AQEShuffleReadExec] =
    collectWithSubqueries(plan) { case read: AQEShuffleReadExec => read }
}
