package io.apportion.reads

import java.nio.file.Files

import scala.collection.mutable

import io.apportion.SparkSuite
import io.apportion.report.{DecisionEvent, DecisionLog, DecisionRecord}
import org.apache.spark.apportion.Listeners
import org.apache.spark.scheduler.{SparkListener, SparkListenerEvent}
import org.apache.spark.sql.catalyst.plans.QueryPlan
import org.apache.spark.sql.{DataFrame, SparkSession, TpcTables}
import org.scalatest.prop.TableDrivenPropertyChecks._

/** With `mode=observe`, decisions are recorded and Spark's plans stay the same as with `enabled=false`. */
class ObservingSuite extends SparkSuite {
  private val noBroadcast = Seq("spark.sql.autoBroadcastJoinThreshold" -> "-1")
  private val skewed = noBroadcast ++ Seq(
    "spark.sql.adaptive.skewJoin.skewedPartitionFactor" -> "1.0",
    "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes" -> "1KB",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes" -> "8KB"
  )
  private val smallTasks = Seq("spark.sql.adaptive.advisoryPartitionSizeInBytes" -> "8KB", "minTaskVolume" -> "1KB")

  override protected def beforeAll(): Unit = {
    super.beforeAll()
    spark.range(0, 20000, 1, 4).selectExpr("id", "id % 10 AS k").write.saveAsTable("orders")
  }

  override protected def afterAll(): Unit =
    try spark.sql("DROP TABLE orders")
    finally super.afterAll()

  private val queries = Table[String, String, Seq[(String, String)]](
    ("query", "sql", "settings"),
    ("an aggregate", "SELECT k, count(*) FROM numbers GROUP BY k", Nil),
    ("an aggregate in several tasks", "SELECT id % 19999, count(*) FROM numbers GROUP BY 1", smallTasks),
    ("a sort", "SELECT id FROM numbers ORDER BY id", smallTasks),
    ("a sort-merge join", "SELECT a.id FROM numbers a JOIN numbers b ON a.id = b.k", noBroadcast),
    ("a shuffled hash join", "SELECT /*+ SHUFFLE_HASH(b) */ a.id FROM numbers a JOIN few b ON a.id = b.k", noBroadcast),
    ("a broadcast join", "SELECT a.k, count(*) FROM numbers a JOIN few b ON a.id = b.k GROUP BY a.k", Nil),
    (
      "a join that becomes a broadcast join and reads locally",
      """SELECT a.id, b.m FROM numbers a LEFT JOIN (
        |  SELECT k, max(id) AS m FROM numbers GROUP BY k HAVING max(id) % 997 = 3) b ON a.id = b.m""".stripMargin,
      Seq("spark.sql.autoBroadcastJoinThreshold" -> "20KB")
    ),
    (
      "a skewed join",
      "SELECT a.id FROM numbers a JOIN (SELECT if(id < 15000, 7, id) AS k FROM numbers) b ON a.id = b.k",
      skewed
    ),
    ("a window", "SELECT id, row_number() OVER (PARTITION BY k ORDER BY id) FROM numbers", Nil),
    (
      "a union",
      "SELECT k, count(*) FROM numbers GROUP BY k UNION ALL SELECT k, count(*) FROM few GROUP BY k",
      smallTasks
    ),
    ("a scalar subquery", "SELECT k, count(*) FROM numbers WHERE id > (SELECT avg(id) FROM few) GROUP BY k", Nil),
    ("an IN subquery", "SELECT count(*) FROM numbers WHERE id IN (SELECT k FROM few)", noBroadcast),
    (
      "an expression used twice",
      "WITH c AS (SELECT k, count(*) AS n FROM numbers GROUP BY k) SELECT * FROM c a JOIN c b ON a.n = b.k",
      noBroadcast
    ),
    ("a rollup", "SELECT k, id % 3, count(*) FROM numbers GROUP BY ROLLUP (k, id % 3)", Nil),
    ("a DISTINCT aggregate", "SELECT k % 7, count(DISTINCT id), sum(id) FROM numbers GROUP BY k % 7", Nil),
    ("a rebalance", "SELECT /*+ REBALANCE(k) */ id, k FROM numbers", smallTasks),
    ("a repartition by columns", "SELECT /*+ REPARTITION(k) */ id, k FROM numbers", smallTasks),
    ("a repartition that Spark drops", "SELECT /*+ REPARTITION(200, k) */ k, count(*) FROM numbers GROUP BY k", Nil),
    ("a scan", "SELECT k, count(*) FROM orders GROUP BY k", Seq("spark.sql.files.maxPartitionBytes" -> "8KB")),
    ("a scan with an option", "SELECT count(*) FROM orders", Seq("sources.parallelism" -> "9")),
    (
      "a range without a number of partitions",
      "SELECT id % 5, count(*) FROM range(1000) GROUP BY 1",
      Seq("sources.defaultParallelism" -> "5")
    ),
    ("few keys", "SELECT a.id FROM numbers a JOIN (SELECT DISTINCT 1 AS k FROM few) b ON a.id = b.k", Nil),
    (
      "an empty side",
      "SELECT a.k, count(*) FROM (SELECT * FROM numbers WHERE id < 0) a FULL JOIN few b ON a.k = b.k GROUP BY a.k",
      noBroadcast
    ),
    ("a hint of Apportion", "SELECT /*+ PARALLELISM(5) */ k, count(*) FROM numbers GROUP BY k", Nil),
    ("a hint below ORDER BY", "SELECT /*+ PARALLELISM(5) */ k FROM numbers ORDER BY id", smallTasks),
    ("a set parallelism", "SELECT k, count(*) FROM numbers GROUP BY k", Seq("parallelism" -> "5"))
  )

  /** The text of a plan with ids in the order in which they appear. */
  private def normalized(plan: QueryPlan[_]): String = {
    val ids = mutable.Map.empty[String, Int]
    "#\\d+|plan_id=\\d+".r
      .replaceAllIn(plan.treeString, found => s"#${ids.getOrElseUpdate(found.matched, ids.size)}")
  }

  private def run(session: SparkSession, query: DataFrame): (String, Seq[String]) = {
    val rows = query.collect().map(_.toString).sorted.toSeq
    (normalized(query.queryExecution.executedPlan), rows)
  }

  /** Where a plan's text is cut off depends on how long its ids are. */
  private val wholeText =
    Seq("spark.sql.maxMetadataStringLength" -> "100000", "spark.sql.debug.maxToStringFields" -> "1000")

  private def run(sql: String, settings: (String, String)*): (String, Seq[String]) =
    withSession(settings ++ wholeText: _*)(session => run(session, session.sql(sql)))

  private def observed(sql: String, settings: (String, String)*): Seq[DecisionRecord] =
    decisionsOf(sql, settings :+ ("mode" -> "observe"): _*)

  forAll(queries) { (name, sql, settings) =>
    // Runs once for both tests.
    lazy val ((observedPlan, observedRows), records) =
      withSession(settings ++ wholeText :+ ("mode" -> "observe"): _*) { session =>
        val found = run(session, session.sql(sql))
        (found, DecisionLog.of(session).all)
      }

    test(s"observing changes neither the plan nor the rows: $name") {
      val (plan, rows) = run(sql, settings :+ ("enabled" -> "false"): _*)
      assert(observedPlan == plan)
      assert(observedRows == rows)
    }

    test(s"observing records decisions: $name") {
      assert(records.nonEmpty)
      assert(records.forall(record => record.layout == "observed" || record.layout == "unchanged"))
      records.filter(_.layout == "observed").foreach { record =>
        assert(record.ranges.size == 0)
        assert(record.reason.matches("Observed: .*; Spark runs (1 task|[0-9]+ tasks)\\."), record.reason)
      }
    }
  }

  test("observing does not change the plan of a cached table") {
    // Spark does not coalesce what it caches.
    val few = "spark.sql.shuffle.partitions" -> "20"
    def cached(settings: (String, String)*) = withSession(settings ++ noBroadcast ++ wholeText :+ few: _*) { session =>
      val query =
        session.sql("SELECT a.k, count(*) AS c FROM numbers a JOIN numbers b ON a.id = b.k GROUP BY a.k").cache()
      try run(session, query.groupBy("c").count())
      finally query.unpersist(true)
    }
    assert(cached("mode" -> "observe") == cached("enabled" -> "false"))
  }

  test("observing does not change the plan of a write") {
    val directory = Files.createTempDirectory("written")
    def written(settings: (String, String)*) = withSession(settings: _*) { session =>
      val query = session.sql(
        s"INSERT OVERWRITE DIRECTORY '$directory' USING parquet SELECT k, count(*) AS c FROM numbers GROUP BY k"
      )
      (normalized(query.queryExecution.executedPlan), session.read.parquet(directory.toString).inputFiles.length)
    }
    assert(written("mode" -> "observe") == written("enabled" -> "false"))
  }

  test("observing does not change the plans of every third query of TPC-DS and TPC-H") {
    val queries = TpcTables.queries.grouped(3).map(_.head).toSeq
    def plans(settings: (String, String)*) = withSession(settings ++ noBroadcast ++ wholeText: _*) { session =>
      TpcTables.createViews(session)
      queries.map { case (name, query) =>
        name -> normalized(session.sql(query).queryExecution.executedPlan).replaceAll("file:\\S*", "")
      }
    }
    plans("mode" -> "observe").zip(plans("enabled" -> "false")).foreach { case (observed, spark) =>
      assert(observed == spark)
    }
  }

  test("an observed decision is the same as with mode=auto and Spark's number of partitions") {
    val settings = Seq("dataVolumePerTask" -> "8KB", "spark.sql.shuffle.partitions" -> "16")
    val sql = "SELECT id % 19999, count(*) FROM numbers GROUP BY 1"
    val auto = decisionOf(sql, settings :+ ("adaptiveWrites" -> "false"): _*)
    val record = only(observed(sql, settings: _*))
    assert(auto.parallelism > 2)
    assert(record.parallelism == auto.parallelism && record.inputBytes == auto.inputBytes)
    assert(record.kind == auto.kind && record.clamps == auto.clamps && record.raw == auto.raw)
    assert(record.reason.contains(auto.reason.stripSuffix(".")))
  }

  test("an observed record has the tasks and bytes of Spark's layout") {
    val sql = "SELECT id % 19999, count(*) FROM numbers GROUP BY 1"
    val whole = only(observed(sql, "parallelism" -> "4", "spark.sql.adaptive.coalescePartitions.enabled" -> "false"))
    assert((whole.parallelism, whole.tasks, whole.subpartitions) == ((4, 200, 200)))
    assert(whole.meanTaskBytes == whole.inputBytes / 200 && whole.largestTaskBytes < whole.inputBytes / 100)
    val coalesced =
      only(observed(sql, "parallelism" -> "4", "spark.sql.adaptive.coalescePartitions.parallelismFirst" -> "false"))
    assert((coalesced.parallelism, coalesced.tasks) == ((4, 1)))
    assert(coalesced.largestTaskBytes == coalesced.inputBytes && coalesced.meanTaskBytes == coalesced.inputBytes)
    assert(
      coalesced.reason.startsWith("Observed: 4 tasks: parallelism is set to 4") && coalesced.reason.endsWith(
        "; Spark runs 1 task."
      )
    )
  }

  test("hints are part of an observed decision") {
    val record = only(observed("SELECT /*+ PARALLELISM(5) */ k, count(*) FROM numbers GROUP BY k"))
    assert(record.parallelism == 5 && record.sources("parallelism") == "hint on the query block, line 1")
    assert(record.tasks != 5)
  }

  test("the observed record of a scan has the tasks that Spark makes") {
    val record = observed("SELECT * FROM orders", "sources.parallelism" -> "9").head
    assert((record.layout, record.parallelism) == (("observed", 9)))
    assert(record.tasks < 9 && record.reason.endsWith(s"; Spark runs ${record.tasks} tasks."))
  }

  test("a query does not wait for slots while observing") {
    val records = observed(
      "SELECT k, count(*) FROM numbers GROUP BY k",
      "resources.minSlots" -> "1000",
      "resources.timeout" -> "1s"
    )
    assert(records.forall(_.slots.contains(2)))
  }

  test("splits that Apportion would make are recorded while observing") {
    val sql = """SELECT count(*), max(b.w) FROM numbers a JOIN (
                |  SELECT if(id < 15000, 7, id) AS k, sha2(string(id), 256) AS w FROM numbers) b ON a.id = b.k""".stripMargin
    val settings = noBroadcast ++ Seq("dataVolumePerTask" -> "256KB", "minTaskVolume" -> "1KB")
    val reasons = observed(sql, settings: _*).map(_.reason)
    assert(reasons.exists(_.contains("tasks read parts of 1 skewed shuffle partition")), reasons.mkString("\n"))
  }

  test("observed decisions are posted as events") {
    val layouts = mutable.Buffer.empty[String]
    val listener = new SparkListener {
      override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
        case DecisionEvent(decision) => layouts += decision.get("layout").asText
        case _                       =>
      }
    }
    spark.sparkContext.addSparkListener(listener)
    observed("SELECT k, count(*) FROM numbers GROUP BY k")
    Listeners.drain(spark.sparkContext)
    spark.sparkContext.removeSparkListener(listener)
    assert(layouts == Seq("observed"))
  }
}
