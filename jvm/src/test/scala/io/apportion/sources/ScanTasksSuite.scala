package io.apportion.sources

import io.apportion.SparkSuite
import io.apportion.report.DecisionLog
import org.apache.spark.sql.execution.FileSourceScanExec
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanHelper
import org.apache.spark.sql.{ActiveSession, DataFrame, SparkSession}
import org.scalatest.prop.TableDrivenPropertyChecks._

/** How many tasks scan the files of a table: `orders` (parquet, four files) and `lines` (csv, one file). */
class ScanTasksSuite extends SparkSuite with AdaptiveSparkPlanHelper {

  override protected def beforeAll(): Unit = {
    super.beforeAll()
    spark.range(0, 20000, 1, 4).selectExpr("id", "id % 10 AS k").write.saveAsTable("orders")
    spark.range(0, 20000, 1, 1).selectExpr("id", "id % 7 AS k").write.format("csv").saveAsTable("lines")
  }

  override protected def afterAll(): Unit =
    try Seq("orders", "lines").foreach(table => spark.sql(s"DROP TABLE $table"))
    finally super.afterAll()

  /** table: tasks, of all scans of the query */
  private def scans(session: SparkSession, query: DataFrame): Seq[String] = {
    query.collect()
    collectWithSubqueries(query.queryExecution.executedPlan) { case scan: FileSourceScanExec =>
      s"${scan.tableIdentifier.fold("")(_.table)}: ${ActiveSession.in(session)(scan.inputRDD.getNumPartitions)}"
    }.sorted
  }

  /** Files count as no more than their bytes. */
  private val small = Seq("spark.sql.files.openCostInBytes" -> "0", "minTaskVolume" -> "1")

  private val cases = Table[String, String, Seq[String]](
    ("case", "query", "scans"),
    ("no hint", "SELECT * FROM orders", Seq("orders: 2")),
    ("more tasks than files", "SELECT /*+ SOURCE_PARALLELISM(7) */ * FROM orders", Seq("orders: 7")),
    ("fewer", "SELECT /*+ SOURCE_PARALLELISM(1) */ * FROM orders", Seq("orders: 1")),
    ("a text file", "SELECT /*+ SOURCE_PARALLELISM(5) */ * FROM lines", Seq("lines: 5")),
    ("no columns", "SELECT /*+ SOURCE_PARALLELISM(3) */ count(*) FROM orders", Seq("orders: 3")),
    (
      "every scan of the block",
      "SELECT /*+ SOURCE_PARALLELISM(3) */ count(*) FROM orders o JOIN lines l ON o.id = l.id",
      Seq("lines: 3", "orders: 3")
    ),
    (
      "a table by name",
      "SELECT /*+ SOURCE_PARALLELISM(lines, 3) */ count(*) FROM orders JOIN lines USING (id)",
      Seq("lines: 3", "orders: 2")
    ),
    (
      "by its name with the database",
      "SELECT /*+ SOURCE_PARALLELISM(default.lines, 3) */ count(*) FROM orders JOIN lines USING (id)",
      Seq("lines: 3", "orders: 2")
    ),
    (
      "by alias, one of two of the same table",
      "SELECT /*+ SOURCE_PARALLELISM(b, 3) */ count(*) FROM orders a JOIN orders b ON a.id = b.k",
      Seq("orders: 2", "orders: 3")
    ),
    (
      "a table by name beside all others",
      "SELECT /*+ SOURCE_PARALLELISM(4), SOURCE_PARALLELISM(o, 3) */ count(*) FROM orders o JOIN lines l ON o.id = l.id",
      Seq("lines: 4", "orders: 3")
    ),
    (
      "an inner block inherits",
      "SELECT /*+ SOURCE_PARALLELISM(3) */ k, count(*) FROM (SELECT * FROM orders WHERE id > 5) GROUP BY k",
      Seq("orders: 3")
    ),
    (
      "unless it has its own",
      "SELECT /*+ SOURCE_PARALLELISM(3) */ count(*) FROM (SELECT /*+ SOURCE_PARALLELISM(5) */ * FROM orders) a JOIN lines b ON a.id = b.id",
      Seq("lines: 3", "orders: 5")
    ),
    (
      "a name means nothing in an inner block",
      "SELECT /*+ SOURCE_PARALLELISM(orders, 3) */ count(*) FROM orders WHERE id IN (SELECT k FROM orders)",
      Seq("orders: 2", "orders: 3")
    ),
    (
      "unless that names it as well",
      "SELECT /*+ SOURCE_PARALLELISM(orders, 3) */ count(*) FROM orders WHERE id IN (SELECT /*+ SOURCE_PARALLELISM(orders, 3) */ k FROM orders)",
      Seq("orders: 3", "orders: 3")
    ),
    (
      "a subquery",
      "SELECT count(*) FROM lines WHERE id > (SELECT /*+ SOURCE_PARALLELISM(3) */ avg(k) FROM orders)",
      Seq("lines: 1", "orders: 3")
    )
  )

  forAll(cases) { (name, query, expected) =>
    test(name) {
      withSession() { session =>
        val hinted = session.sql(query)
        assert(scans(session, hinted) == expected)
        val plain = session.sql(query.replaceAll("/\\*\\+.*?\\*/", ""))
        assert(hinted.collect().map(_.toString).sorted.toSeq == plain.collect().map(_.toString).sorted.toSeq)
      }
    }
  }

  test("a view over a table is meant by its name") {
    withSession() { session =>
      session.sql("CREATE TEMP VIEW recent AS SELECT * FROM orders WHERE id > 100")
      assert(
        scans(session, session.sql("SELECT /*+ SOURCE_PARALLELISM(recent, 3) */ * FROM recent")) == Seq("orders: 3")
      )
      assert(scans(session, session.sql("SELECT * FROM recent")) == Seq("orders: 2"))
    }
  }

  test("a DataFrame") {
    withSession() { session =>
      assert(scans(session, session.table("orders").hint("source_parallelism", 3)) == Seq("orders: 3"))
    }
  }

  private val decided = Table[String, String, Seq[(String, String)], Seq[String]](
    ("case", "query", "settings", "scans"),
    ("fewer tasks than Spark's two", "SELECT * FROM orders", Seq("dataVolumePerTask" -> "1GB"), Seq("orders: 1")),
    (
      "more, by the volume of a task",
      "SELECT * FROM orders",
      small ++ Seq("dataVolumePerTask" -> "20KB"),
      Seq("orders: 5")
    ),
    ("a text file", "SELECT * FROM lines", small ++ Seq("dataVolumePerTask" -> "20KB"), Seq("lines: 8")),
    (
      "no more than the most",
      "SELECT * FROM orders",
      small ++ Seq("dataVolumePerTask" -> "1KB", "sources.maxParallelism" -> "12"),
      Seq("orders: 12")
    ),
    ("a setting", "SELECT * FROM orders", Seq("sources.parallelism" -> "5"), Seq("orders: 5")),
    (
      "a hint before the setting",
      "SELECT /*+ SOURCE_PARALLELISM(3) */ * FROM orders",
      Seq("sources.parallelism" -> "5"),
      Seq("orders: 3")
    ),
    (
      "at least as many as Spark is told to make",
      "SELECT * FROM orders",
      Seq("dataVolumePerTask" -> "1GB", "spark.sql.files.minPartitionNum" -> "4"),
      Seq("orders: 4")
    ),
    (
      "a volume of the block",
      "SELECT /*+ DATA_VOLUME('20KB') */ * FROM orders",
      small,
      Seq("orders: 5")
    ),
    (
      "reactive: tasks for the slots, while each keeps its volume",
      "SELECT * FROM orders",
      Seq("mode" -> "reactive", "minTaskVolume" -> "1KB", "spark.sql.files.openCostInBytes" -> "0"),
      Seq("orders: 2")
    ),
    ("off", "SELECT * FROM orders", Seq("sources.enabled" -> "false", "sources.parallelism" -> "5"), Seq("orders: 2"))
  )

  forAll(decided) { (name, query, settings, expected) =>
    test(s"decided: $name") {
      withSession(("mode" -> "active") +: settings: _*) { session =>
        assert(scans(session, session.sql(query)) == expected)
        assert(session.sql(query).collect().toSet == spark.table(query.split(" ").last).collect().toSet)
      }
    }
  }

  test("a very large scan gets as many tasks as Spark makes, unless the most is set") {
    val pieces = "spark.sql.files.maxPartitionBytes" -> "100"
    def tasks(settings: (String, String)*): Int = withSession(small ++ Seq("mode" -> "active", pieces) ++ settings: _*) {
      session => tasksOfScan(session, session.table("lines"))
    }
    val sparks = tasks("sources.enabled" -> "false")
    assert(sparks > 1000)
    assert(tasks() == sparks)
    assert(tasks("sources.maxParallelism" -> "1000") == 1000)
    // That is Spark's own number where it makes no more than the default.
    assert(tasks("dataVolumePerTask" -> "10") == sparks)
    withSession(small ++ Seq("mode" -> "active", pieces, "dataVolumePerTask" -> "10"): _*) { session =>
      val scan = collectFirst(session.table("lines").queryExecution.executedPlan) { case its: FileSourceScanExec =>
        its
      }
      val (decision, _) = ActiveSession.in(session)(ScanTasks(session).decide(scan.get)).get
      assert(decision.reason.contains(s"lowered to $sparks by maxParallelism $sparks (as many as Spark makes)"))
    }
  }

  test("the record says why") {
    withSession(Seq("mode" -> "active", "dataVolumePerTask" -> "20KB") ++ small: _*) { session =>
      val record = only(decisionsOf(session, session.table("orders")))
      assert(
        (record.operator, record.tasks, record.layout) == (("Scan parquet spark_catalog.default.orders", 5, "files"))
      )
      assert(record.reason.matches("5 tasks: [0-9.]+ KiB at 20.0 KiB a task \\(session setting\\) makes 5."))
    }
  }

  test("an option of the reader") {
    withSession() { session =>
      val path = session.table("orders").inputFiles.head.replaceAll("/[^/]*$", "")
      def tasks(option: String): Int = {
        val read = session.read.option("apportion.tasks", option).parquet(path)
        read.collect()
        tasksOfScan(session, read)
      }
      assert(tasks("3") == 3)
      // With a warning in the log.
      assert(tasks("many") == 2)
    }
  }

  for (format <- Seq("parquet", "orc", "csv", "json"))
    test(s"$format as a table of version 2 of Spark's API, and of version 1") {
      for (v1 <- Seq("", "parquet,orc,csv,json"))
        withSession("sources.parallelism" -> "8", "spark.sql.sources.useV1SourceList" -> v1) { session =>
          val path = s"${System.getProperty("java.io.tmpdir")}/apportion-$format-${System.nanoTime}"
          session.range(0, 20000, 1, 4).selectExpr("id", "id % 10 AS k").write.format(format).save(path)
          val read = session.read.schema("id LONG, k LONG").format(format).load(path)
          assert(read.collect().map(_.getLong(0)).sorted.toSeq == (0L until 20000L))
          assert(DecisionLog.of(session).all.last.tasks == 8)
          assert(tasksOfScan(session, read) == 8)
          // Two scans that differ in nothing but how they are cut have to give the same rows once they are joined.
          assert(read.join(read.withColumnRenamed("k", "k2"), "id").count() == 20000)
        }
    }

  private def tasksOfScan(session: SparkSession, query: DataFrame): Int = ActiveSession.in(session) {
    collectFirst(query.queryExecution.executedPlan) {
      case scan: FileSourceScanExec => scan.inputRDD.getNumPartitions
      case scan: BatchScanExec      => scan.inputRDD.getNumPartitions
    }.get
  }

  test("a source whose size nobody knows gets the default, unless the query gives the number") {
    withSession("sources.defaultParallelism" -> "3") { session =>
      assert(session.sql("SELECT * FROM range(100)").rdd.getNumPartitions == 3)
      assert(session.sql("SELECT * FROM range(0, 100, 1, 7)").rdd.getNumPartitions == 7)
      assert(session.range(0, 100, 1, 7).rdd.getNumPartitions == 7)
    }
  }

  test("Apportion off") {
    withSession("enabled" -> "false") { session =>
      assert(scans(session, session.sql("SELECT /*+ SOURCE_PARALLELISM(3) */ * FROM orders")) == Seq("orders: 2"))
    }
  }
}
