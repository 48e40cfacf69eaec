package io.apportion.scans

import java.lang.ref.WeakReference
import java.nio.file.{Files, Paths}
import java.util.concurrent.atomic.AtomicInteger

import scala.util.Try

import io.apportion.SparkSuite
import io.apportion.decision.{Decider, Policy}
import io.apportion.report.DecisionLog
import io.apportion.settings.SessionPolicy
import org.apache.spark.apportion.Listeners
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.{ActiveSession, DataFrame, DataFrames, QueryListeners, Row, SparkSession}
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.execution.{FileSourceScanExec, QueryExecution}
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanHelper
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.QueryExecutionListener
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

  private def newFolder(): String = Files.createTempDirectory("scans").resolve("files").toString

  /** table: tasks, of all scans of the query */
  private def scans(session: SparkSession, query: DataFrame): Seq[String] = {
    query.collect()
    scansOf(session, query)
  }

  /** The same, if the query has run. */
  private def scansOf(session: SparkSession, query: DataFrame): Seq[String] =
    collectWithSubqueries(query.queryExecution.executedPlan) { case scan: FileSourceScanExec =>
      s"${scan.tableIdentifier.fold("")(_.table)}: ${ActiveSession.in(session)(scan.inputRDD.getNumPartitions)}"
    }.sorted

  /** Files count as no more than their bytes. */
  private val small = Seq("spark.sql.files.openCostInBytes" -> "0", "minTaskVolume" -> "1")

  private val cases = Table[String, String, Seq[String]](
    ("case", "query", "scans"),
    ("no scan without the hint", "SELECT * FROM orders", Seq("orders: 2")),
    ("more tasks than files", "SELECT /*+ SOURCE_PARALLELISM(7) */ * FROM orders", Seq("orders: 7")),
    ("fewer tasks than Spark makes", "SELECT /*+ SOURCE_PARALLELISM(1) */ * FROM orders", Seq("orders: 1")),
    ("a text file", "SELECT /*+ SOURCE_PARALLELISM(5) */ * FROM lines", Seq("lines: 5")),
    ("a scan without columns", "SELECT /*+ SOURCE_PARALLELISM(3) */ count(*) FROM orders", Seq("orders: 3")),
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
      "a table by its name with the database",
      "SELECT /*+ SOURCE_PARALLELISM(default.lines, 3) */ count(*) FROM orders JOIN lines USING (id)",
      Seq("lines: 3", "orders: 2")
    ),
    (
      "a table by its alias, if two scans read the same table",
      "SELECT /*+ SOURCE_PARALLELISM(b, 3) */ count(*) FROM orders a JOIN orders b ON a.id = b.k",
      Seq("orders: 2", "orders: 3")
    ),
    (
      "a table by name, and all other tables",
      "SELECT /*+ SOURCE_PARALLELISM(4), SOURCE_PARALLELISM(o, 3) */ count(*) FROM orders o JOIN lines l ON o.id = l.id",
      Seq("lines: 4", "orders: 3")
    ),
    (
      "an inner block, which inherits the hint",
      "SELECT /*+ SOURCE_PARALLELISM(3) */ k, count(*) FROM (SELECT * FROM orders WHERE id > 5) GROUP BY k",
      Seq("orders: 3")
    ),
    (
      "an inner block with its own hint",
      "SELECT /*+ SOURCE_PARALLELISM(3) */ count(*) FROM (SELECT /*+ SOURCE_PARALLELISM(5) */ * FROM orders) a JOIN lines b ON a.id = b.id",
      Seq("lines: 3", "orders: 5")
    ),
    (
      "no table of an inner block, if the hint names the table",
      "SELECT /*+ SOURCE_PARALLELISM(orders, 3) */ count(*) FROM orders WHERE id IN (SELECT k FROM orders)",
      Seq("orders: 2", "orders: 3")
    ),
    (
      "a table of an inner block that also names the table",
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
    test(s"SOURCE_PARALLELISM sets the tasks of scans: $name") {
      withSession() { session =>
        val hinted = session.sql(query)
        val rows = sortedRows(hinted)
        assert(scansOf(session, hinted) == expected)
        assert(rows == sortedRows(session.sql(query.replaceAll("/\\*\\+.*?\\*/", ""))))
      }
    }
  }

  test("SOURCE_PARALLELISM accepts the name of a view") {
    withSession() { session =>
      session.sql("CREATE TEMP VIEW recent AS SELECT * FROM orders WHERE id > 100")
      assert(
        scans(session, session.sql("SELECT /*+ SOURCE_PARALLELISM(recent, 3) */ * FROM recent")) == Seq("orders: 3")
      )
      assert(scans(session, session.sql("SELECT * FROM recent")) == Seq("orders: 2"))
    }
  }

  test("a hint on a DataFrame sets the tasks of its scan") {
    withSession() { session =>
      assert(scans(session, session.table("orders").hint("source_parallelism", 3)) == Seq("orders: 3"))
    }
  }

  private val decided = Table[String, String, Seq[(String, String)], Seq[String]](
    ("case", "query", "settings", "scans"),
    (
      "Spark's two tasks stay if the target size makes one",
      "SELECT * FROM orders",
      Seq("dataVolumePerTask" -> "1GB"),
      Seq("orders: 2")
    ),
    (
      "Spark's two tasks stay if the target size makes four",
      "SELECT * FROM lines",
      small ++ Seq("dataVolumePerTask" -> "40KB"),
      Seq("lines: 2")
    ),
    (
      "a target size in a setting makes fewer than half of Spark's tasks",
      "SELECT * FROM lines",
      small ++ Seq("dataVolumePerTask" -> "1GB", "spark.sql.files.maxPartitionBytes" -> "10KB"),
      Seq("lines: 1")
    ),
    (
      "a target size in a hint makes fewer tasks than Spark",
      "SELECT /*+ DATA_VOLUME('1GB') */ * FROM lines",
      small ++ Seq("spark.sql.files.maxPartitionBytes" -> "10KB"),
      Seq("lines: 1")
    ),
    (
      "sources.maxParallelism makes slightly fewer tasks than Spark",
      "SELECT * FROM lines",
      small ++ Seq("spark.sql.files.maxPartitionBytes" -> "10KB", "sources.maxParallelism" -> "12"),
      Seq("lines: 12")
    ),
    (
      "spark.sql.files.maxPartitionNum limits the tasks",
      "SELECT * FROM lines",
      small ++ Seq("dataVolumePerTask" -> "1KB", "spark.sql.files.maxPartitionNum" -> "10"),
      Seq("lines: 10")
    ),
    (
      "a target size in a setting makes more tasks than Spark",
      "SELECT * FROM lines",
      small ++ Seq("dataVolumePerTask" -> "10KB"),
      Seq("lines: 15")
    ),
    (
      "a text file is cut by the target size",
      "SELECT * FROM lines",
      small ++ Seq("dataVolumePerTask" -> "20KB"),
      Seq("lines: 8")
    ),
    (
      "sources.maxParallelism limits the tasks",
      "SELECT * FROM orders",
      small ++ Seq("dataVolumePerTask" -> "1KB", "sources.maxParallelism" -> "12"),
      Seq("orders: 12")
    ),
    ("sources.parallelism sets the tasks", "SELECT * FROM orders", Seq("sources.parallelism" -> "5"), Seq("orders: 5")),
    (
      "a hint overrides sources.parallelism",
      "SELECT /*+ SOURCE_PARALLELISM(3) */ * FROM orders",
      Seq("sources.parallelism" -> "5"),
      Seq("orders: 3")
    ),
    (
      "spark.sql.files.minPartitionNum is the minimum",
      "SELECT * FROM orders",
      Seq("dataVolumePerTask" -> "1GB", "spark.sql.files.minPartitionNum" -> "4"),
      Seq("orders: 4")
    ),
    (
      "a target size in a hint makes more tasks than Spark",
      "SELECT /*+ DATA_VOLUME('20KB') */ * FROM lines",
      small,
      Seq("lines: 8")
    ),
    (
      "a scan in reactive mode fills the slots, but keeps Spark's three tasks",
      "SELECT * FROM orders",
      Seq("mode" -> "reactive", "minTaskVolume" -> "1KB", "spark.sql.files.openCostInBytes" -> "0"),
      Seq("orders: 3")
    ),
    (
      "sources.enabled=false leaves scans to Spark",
      "SELECT * FROM orders",
      Seq("sources.enabled" -> "false", "sources.parallelism" -> "5"),
      Seq("orders: 2")
    )
  )

  forAll(decided) { (name, query, settings, expected) =>
    test(s"a scan is decided: $name") {
      withSession(("mode" -> "active") +: settings: _*) { session =>
        assert(scans(session, session.sql(query)) == expected)
        assert(session.sql(query).collect().toSet == spark.table(query.split(" ").last).collect().toSet)
      }
    }
  }

  test("a very large scan gets as many tasks as Spark makes, unless a maximum is set") {
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
      val (decision, _) = ActiveSession.in(session)(ScanTasks(session, Nil).decide(scan.get)).get
      assert(decision.sentence.text.contains(s"lowered to $sparks by maxParallelism $sparks (as many as Spark makes)"))
    }
  }

  test("the record of a scan that keeps Spark's tasks says how many were decided") {
    withSession(Seq("mode" -> "active", "dataVolumePerTask" -> "40KB") ++ small: _*) { session =>
      val record = only(decisionsOf(session, session.table("lines")))
      assert((record.tasks, record.parallelism, record.kind) == ((2, 2, "unchanged")))
      assert(
        record.reason.matches("4 tasks: .* per task.*; Apportion keeps Spark's 2 because the difference is small.")
      )
    }
  }

  test("columns of fixed width count by their share of the file, other columns as the whole file") {
    withSession(Seq("mode" -> "active", "dataVolumePerTask" -> "5KB") ++ small: _*) { session =>
      val folder = newFolder()
      val columns = (1 to 9).map(n => s"hash(id, $n) AS c$n") :+ "sha2(string(id), 256) AS text"
      spark.range(0, 2000, 1, 1).selectExpr(columns: _*).write.parquet(folder)
      def bytes(columns: String*): Long =
        only(decisionsOf(session, session.read.parquet(folder).selectExpr(columns: _*))).inputBytes
      val all = bytes("*")
      assert(bytes("text") == all)
      // Nine integers of 4 bytes, and the 20 bytes that Spark supposes of a text.
      assert(math.abs(bytes("c1") - all * 4 / 56) <= 1)
      assert(math.abs(bytes("c1", "c2", "c3") - all * 12 / 56) <= 1)
      // Not fewer than Spark's.
      assert(only(decisionsOf(session, session.read.parquet(folder).select("c1"))).tasks == 2)
    }
  }

  test("with adaptive execution off, only an explicit number of tasks changes a scan") {
    val off = small ++ Seq("mode" -> "active", "dataVolumePerTask" -> "20KB", "spark.sql.adaptive.enabled" -> "false")
    withSession(off: _*) { session =>
      assert(decisionsOf(session, session.table("lines")).isEmpty)
      assert(scans(session, session.table("lines")) == Seq("lines: 2"))
      assert(scans(session, session.sql("SELECT /*+ SOURCE_PARALLELISM(5) */ * FROM lines")) == Seq("lines: 5"))
    }
    withSession(off :+ ("sources.parallelism" -> "6"): _*) { session =>
      assert(scans(session, session.table("lines")) == Seq("lines: 6"))
    }
  }

  test("a scan that Spark plans again and then reuses is reported once") {
    val query = "WITH sums AS (SELECT k, count(*) AS n FROM orders GROUP BY k) " +
      "SELECT * FROM sums a JOIN sums b ON a.k = b.k JOIN sums c ON a.k = c.k JOIN sums d ON a.k = d.k"
    for (cut <- Seq(Nil, Seq("sources.parallelism" -> "5"))) {
      def scansOf(settings: (String, String)*): Int =
        decisionsOf(query, cut ++ settings: _*).count(_.operator.startsWith("Scan"))
      assert(scansOf() == 1)
      assert(scansOf("spark.sql.exchange.reuse" -> "false") == 4)
    }
  }

  test("files are listed once, whether or not the scan is changed") {
    for ((setting, expected) <- Seq("-1" -> 2, "5" -> 5))
      withSession("sources.parallelism" -> setting) { session =>
        val table = session
          .table("orders")
          .queryExecution
          .optimizedPlan
          .collectFirst { case leaf: LogicalRelation =>
            leaf.catalogTable
          }
          .flatten
        val index = new CountingCatalogIndex(session, table.get)
        val query = DataFrames.of(session, LogicalRelation(relation(session, index)))
        assert(query.collect().length == 20000)
        assert(tasksOfScan(session, query) == expected)
        assert(index.lists.get == 1)
      }
  }

  test("files that another library's index lists are left to Spark, unless the number of tasks is explicit") {
    for ((setting, lists, expected) <- Seq(("-1", 0, 3), ("5", 1, 5)))
      withSession(
        small ++ Seq("mode" -> "active", "dataVolumePerTask" -> "1KB", "sources.parallelism" -> setting): _*
      ) { session =>
        val location = session.table("orders").inputFiles.head.replaceAll("/[^/]*$", "")
        val index = new CountingIndex(new InMemoryFileIndex(session, Seq(new Path(location)), Map.empty, None))
        val query = DataFrames.of(session, LogicalRelation(relation(session, index)))
        query.queryExecution.executedPlan
        assert(index.lists.get == lists)
        assert(query.collect().length == 20000)
        assert(tasksOfScan(session, query) == expected)
        assert(index.lists.get == 1)
      }
  }

  private def relation(session: SparkSession, index: FileIndex): HadoopFsRelation = {
    val columns = session.table("orders").schema
    HadoopFsRelation(index, new StructType, columns, None, new ParquetFileFormat, Map.empty)(session)
  }

  test("a changed scan with partition pruning at run time returns all rows") {
    withSession(small ++ Seq("mode" -> "active", "dataVolumePerTask" -> "10KB"): _*) { session =>
      val folder = newFolder()
      session.range(0, 20000, 1, 1).selectExpr("id", "id % 20 AS day").write.partitionBy("day").parquet(folder)
      session.read.parquet(folder).createOrReplaceTempView("days")
      val query = session.sql("SELECT sum(d.id) FROM days d JOIN few f ON d.day = f.id WHERE f.k = 7")
      assert(query.collect().toSeq == Seq(Row((0 until 20000).filter(_ % 20 == 7).map(_.toLong).sum)))
    }
  }

  test("200 plans with changed scans leave no listener and no session behind") {
    withSession("sources.parallelism" -> "5") { session =>
      session.listenerManager.register(new QueryExecutionListener {
        override def onSuccess(name: String, execution: QueryExecution, nanos: Long): Unit = ()
        override def onFailure(name: String, execution: QueryExecution, failure: Exception): Unit = ()
      })
      val before = QueryListeners.buses(session.sparkContext)
      assert(before > 0)
      val views = (1 to 200).map { _ =>
        val plan = session.table("orders").queryExecution.executedPlan
        val view = collectFirst(plan) { case scan: FileSourceScanExec => scan.relation.sparkSession }.get
        assert(view ne session)
        new WeakReference(view)
      }
      System.gc()
      assert(QueryListeners.buses(session.sparkContext) == before)
      assert(views.count(_.get != null) <= 5)
    }
  }

  for (v1 <- Seq("", "parquet"))
    test(s"a changed scan follows the confs of its session, even after it was planned, with version 1 for '$v1'") {
      withSession("sources.parallelism" -> "5", "spark.sql.sources.useV1SourceList" -> v1) { session =>
        val folder = newFolder()
        session.range(0, 1000, 1, 2).write.parquet(folder)
        Files.write(Paths.get(folder, "broken.parquet"), "no parquet".getBytes("utf8"))
        val query = session.read.schema("id LONG").parquet(folder)
        assert(tasksOfScan(session, query) >= 5)
        assert(Try(session.read.schema("id LONG").parquet(folder).collect()).isFailure)

        val planned = session.read.schema("id LONG").parquet(folder)
        planned.queryExecution.executedPlan
        session.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
        // Version 2 makes its readers when it plans.
        if (v1.nonEmpty) assert(planned.collect().length == 1000)
        assert(session.read.schema("id LONG").parquet(folder).collect().length == 1000)
      }
    }

  private def scanPolicy(session: SparkSession): Policy = {
    val conf = session.sessionState.conf
    ScanPolicy.of(new SessionPolicy(conf, session.sparkContext), conf, 400, volumeIsHinted = false)
  }

  test("scans fill the registered slots under dynamic allocation, unless the mode is active") {
    withSession() { session =>
      def slots: Option[Int] = scanPolicy(session).slots
      Listeners.withConf(session.sparkContext, "spark.master" -> "yarn", "spark.dynamicAllocation.enabled" -> "true") {
        assert(!new SessionPolicy(session.sessionState.conf, session.sparkContext).reactive)
        assert(slots.contains(2))
        session.conf.set("spark.apportion.mode", "active")
        assert(slots.isEmpty)
      }
    }
  }

  test("a scan never gets fewer tasks than Spark makes, unless the user limits them") {
    withSession() { session =>
      assert(Decider.decideSource(10L << 30, scanPolicy(session)).tasks == 400)
    }
  }

  test("the record of a scan has the reason for its number of tasks") {
    withSession(Seq("mode" -> "active", "dataVolumePerTask" -> "20KB") ++ small: _*) { session =>
      val record = only(decisionsOf(session, session.table("lines")))
      assert(
        (record.operator, record.tasks, record.layout) == (("Scan csv spark_catalog.default.lines", 8, "files"))
      )
      assert(record.reason.matches("8 tasks: [0-9.]+ KiB at 20 KiB per task \\(session setting\\)."))
    }
  }

  test("two scans in one stage of 16 tasks have outcomes") {
    withSession("sources.parallelism" -> "8") { session =>
      decisionsOf(session, session.sql("SELECT id FROM orders UNION ALL SELECT id FROM lines"))
      Listeners.drain(session.sparkContext)
      val decisions = DecisionLog.of(session).all
      assert(decisions.map(_.tasks) == Seq(8, 8) && decisions.forall(_.outcome.isDefined))
    }
  }

  test("the reader option apportion.tasks sets the tasks of a scan") {
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
    test(s"a scan of $format is decided with version 1 and version 2 of the data source API") {
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

  test("a source of unknown size gets sources.defaultParallelism, unless the query sets the number") {
    withSession("sources.defaultParallelism" -> "3") { session =>
      assert(session.sql("SELECT * FROM range(100)").rdd.getNumPartitions == 3)
      assert(session.sql("SELECT * FROM range(0, 100, 1, 7)").rdd.getNumPartitions == 7)
      assert(session.range(0, 100, 1, 7).rdd.getNumPartitions == 7)
    }
  }

  test("a hint on a scan has no effect with enabled=false") {
    withSession("enabled" -> "false") { session =>
      assert(scans(session, session.sql("SELECT /*+ SOURCE_PARALLELISM(3) */ * FROM orders")) == Seq("orders: 2"))
    }
  }
}

/** Counts how often its files are listed: each time is a call to the metastore. */
private final class CountingCatalogIndex(session: SparkSession, table: CatalogTable)
    extends CatalogFileIndex(session, table, sizeInBytes = 0) {
  val lists = new AtomicInteger
  override def listFiles(partitionFilters: Seq[Expression], dataFilters: Seq[Expression]): Seq[PartitionDirectory] = {
    lists.incrementAndGet()
    super.listFiles(partitionFilters, dataFilters)
  }
}

/** Another library's index. */
private final class CountingIndex(index: FileIndex) extends FileIndex {
  val lists = new AtomicInteger
  override def listFiles(partitionFilters: Seq[Expression], dataFilters: Seq[Expression]): Seq[PartitionDirectory] = {
    lists.incrementAndGet()
    index.listFiles(partitionFilters, dataFilters)
  }
  override def rootPaths: Seq[Path] = index.rootPaths
  override def inputFiles: Array[String] = index.inputFiles
  override def refresh(): Unit = index.refresh()
  override def sizeInBytes: Long = index.sizeInBytes
  override def partitionSchema: StructType = index.partitionSchema
}
