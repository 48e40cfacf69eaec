package io.apportion.sources

import io.apportion.SparkSuite
import org.apache.spark.sql.execution.FileSourceScanExec
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanHelper
import org.apache.spark.sql.{DataFrame, SparkSession}
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
      s"${scan.tableIdentifier.fold("")(_.table)}: ${session.withActive(scan.inputRDD.getNumPartitions)}"
    }.sorted
  }

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

  test("Apportion off") {
    withSession("enabled" -> "false") { session =>
      assert(scans(session, session.sql("SELECT /*+ SOURCE_PARALLELISM(3) */ * FROM orders")) == Seq("orders: 2"))
    }
  }
}
