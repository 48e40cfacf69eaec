package io.apportion

import java.nio.file.Files

import io.apportion.report.DecisionLog
import org.apache.spark.sql.{AnalysisException, Row, SparkSession}

/**
 * A little of all that touches Spark where its versions differ. Continuous integration runs it with each jar, as all suites would
 * take too long.
 */
class SmokeSuite extends SparkSuite {
  override protected def generatesCode: Boolean = true

  /** The rows of a query and the layouts of its decisions; Spark alone gives the same rows. */
  private def layouts(query: String, settings: (String, String)*)(
      prepare: SparkSession => Unit = _ => ()
  ): Seq[String] =
    withSession(settings: _*) { session =>
      prepare(session)
      def rows: Seq[Row] = sortedRows(session.sql(query))
      val before = DecisionLog.of(session).all.size
      val found = rows
      val decisions = DecisionLog.of(session).all.drop(before)
      session.conf.set("spark.apportion.enabled", "false")
      assert(found == rows)
      decisions.map(decision => s"${decision.operator}: ${decision.tasks} ${decision.layout}")
    }

  private val active = Seq("mode" -> "active", "spark.sql.autoBroadcastJoinThreshold" -> "-1")

  test("hints set the parallelism of their query blocks") {
    val query = "SELECT /*+ PARALLELISM(2) */ n, count(*) FROM " +
      "(SELECT /*+ PARALLELISM(5) */ k, count(*) AS n FROM numbers GROUP BY k) GROUP BY n"
    assert(layouts(query, active: _*)() == Seq("HashAggregate: 5 even", "HashAggregate: 2 even"))
  }

  test("a wrong hint raises an analysis error") {
    withSession("hints.strict" -> "true") { session =>
      val error = intercept[AnalysisException](session.sql("SELECT /*+ PARALELISM(2) */ 1"))
      assert(error.errorClass.contains("APPORTION_INVALID_HINT.APH201") && error.getSqlState == "42601")
      assert(error.getMessage.contains("Did you mean PARALLELISM?"))
    }
  }

  test("a skewed side of a join is split by map tasks") {
    val query = "SELECT count(*), max(word) FROM heavy JOIN few ON heavy.k = few.id"
    val found = layouts(query, active :+ ("dataVolumePerTask" -> "64KB"): _*) { session =>
      session.range(0, 20000, 1, 20).selectExpr("id % 2 AS k", "sha2(string(id), 256) AS word").createTempView("heavy")
    }
    assert(found.head.startsWith("ShuffledHashJoin: ") && found.head.endsWith(" skew"))
  }

  test("a join that becomes a broadcast join reads map outputs locally") {
    val query = "SELECT count(*) FROM numbers JOIN few ON numbers.id = few.id"
    val found = layouts(query, "spark.sql.autoBroadcastJoinThreshold" -> "-1", "mode" -> "active")(
      _.conf.set("spark.sql.adaptive.autoBroadcastJoinThreshold", "10MB")
    )
    assert(found.exists(_.endsWith(" local")))
  }

  for ((sources, version1) <- Seq("version 1" -> "parquet", "version 2" -> ""))
    test(s"a hint sets the tasks of a file scan with $sources of the data source API") {
      val files = Files.createTempDirectory("smoke").resolve("files").toString
      spark.range(0, 1000, 1, 1).write.parquet(files)
      val query = s"SELECT /*+ SOURCE_PARALLELISM(3) */ * FROM parquet.`$files`"
      val found = layouts(query, "spark.sql.sources.useV1SourceList" -> version1)()
      assert(found.size == 1 && found.head.endsWith(": 3 files"))
    }

  test("even_key spreads keys over all tasks, as task_of shows") {
    val query = "SELECT task_of(5, 16, even_key(k, 5, 16)) AS task, count(*) FROM numbers GROUP BY 1"
    assert(layouts(query)().size == 1)
    withSession()(session => assert(session.sql(query).collect().map(_.getInt(0)).toSet == (0 until 5).toSet))
  }

  test("apportion_slots and apportion_decisions return rows") {
    withSession() { session =>
      def rows(table: String): Long = session.sql(s"SELECT * FROM $table").collect().length
      assert(rows("apportion_slots('SELECT k, count(*) FROM numbers GROUP BY k')") == 4)
      session.sql("SELECT k, count(*) FROM numbers GROUP BY k").collect()
      assert(rows("apportion_decisions()") == 1)
    }
  }

  test("an aggregate of a cached table is decided") {
    val query = "SELECT k, sum(id) FROM cached GROUP BY k"
    val found = layouts(query, active: _*)(_.sql("CACHE TABLE cached AS SELECT k, id FROM numbers"))
    assert(found == Seq("HashAggregate: 1 even"))
    spark.catalog.clearCache()
  }
}
