package io.apportion.reads

import scala.collection.mutable

import io.apportion.SparkSuite
import org.apache.spark.sql.Row
import org.apache.spark.sql.apportion.exchange.KeySplitExec
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanHelper
import org.scalatest.prop.TableDrivenPropertyChecks._

/** Queries whose shuffles have far too few partitions, and whose operators need all rows of a key. */
class KeySplitSuite extends SparkSuite with AdaptiveSparkPlanHelper {

  private val settings = Seq(
    "mode" -> "active",
    "dataVolumePerTask" -> "4KB",
    "adaptiveWrites" -> "false",
    "spark.sql.shuffle.partitions" -> "2",
    "spark.sql.autoBroadcastJoinThreshold" -> "-1",
    // Splits by map tasks come first.
    "spark.sql.adaptive.skewJoin.enabled" -> "false"
  )

  private val queries = Table(
    "query",
    "SELECT id % 9999, count(*), max(k) FROM numbers GROUP BY 1",
    "SELECT id % 9999, collect_list(k) FROM numbers GROUP BY 1",
    "SELECT id % 9999 AS x, k % 7, count(*) FROM numbers GROUP BY 1, 2",
    "SELECT id, row_number() OVER (PARTITION BY k ORDER BY id) FROM numbers",
    "SELECT a.id, b.k FROM numbers a JOIN (SELECT id % 9999 AS x, k FROM numbers) b ON a.id = b.x",
    "SELECT a.id, b.k FROM numbers a FULL JOIN (SELECT id + 10 AS x, k FROM numbers) b ON a.id = b.x AND a.k = b.k",
    "SELECT a.id FROM numbers a LEFT ANTI JOIN (SELECT id * 2 AS x FROM numbers) b ON a.id = b.x",
    "SELECT /*+ SHUFFLE_HASH(b) */ a.id, b.k FROM numbers a JOIN (SELECT id AS x, k FROM numbers) b ON a.id = b.x",
    "SELECT k, id FROM numbers INTERSECT SELECT k, id * 2 FROM numbers"
  )

  private def rows(query: String, settings: (String, String)*): (Seq[Row], Int) = withSession(settings: _*) { session =>
    val frame = session.sql(query)
    val rows = sortedRows(frame)
    (rows, collect(frame.queryExecution.executedPlan) { case split: KeySplitExec => split }.size)
  }

  /** What Spark returns, which does not depend on how Apportion's operators run. */
  private val ofSpark = mutable.Map.empty[String, (Seq[Row], Int)]

  private def assertRowsOfSpark(query: String, settings: (String, String)*): Unit = {
    val (split, operators) = rows(query, settings: _*)
    val (expected, none) = ofSpark.getOrElseUpdate(query, rows(query, settings :+ ("enabled" -> "false"): _*))
    def normal(rows: Seq[Row]) = rows.map(_.toSeq.map {
      case values: scala.collection.Seq[_] => values.map(_.toString).sorted.toSeq
      case other                           => other
    })
    assert(normal(split) == normal(expected))
    assert(operators > 0 && none == 0)
  }

  for (codegen <- Seq("true", "false"))
    test(
      s"rows are the same if tasks keep parts of the keys of a partition, with spark.sql.codegen.wholeStage=$codegen"
    ) {
      forAll(queries)(assertRowsOfSpark(_, settings :+ ("spark.sql.codegen.wholeStage" -> codegen): _*))
    }

  test("tasks keep all rows of keys that a collation makes equal") {
    since("4.0")
    val names = "(SELECT id, concat(if(id < 9999, 'a', 'A'), id % 9999) COLLATE UTF8_LCASE AS name FROM numbers)"
    for (
      query <- Seq(
        s"SELECT lower(min(name)), count(*) FROM $names GROUP BY name",
        s"SELECT id, row_number() OVER (PARTITION BY name ORDER BY id) FROM $names",
        s"SELECT a.id, b.id FROM $names a JOIN $names b ON a.name = b.name AND a.id < b.id"
      )
    ) assertRowsOfSpark(query, settings: _*)
  }

  test("a result that is cached joins with all rows of its keys, although its tasks keep parts of them") {
    since("4.0")
    val mayChange = "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning" -> "true"
    withSession(settings :+ mayChange: _*) { session =>
      val cached = session.sql("SELECT id % 9999 AS x, count(*) AS n FROM numbers GROUP BY 1").cache()
      assert(cached.count() == 9999 && cached.rdd.getNumPartitions > 2)
      val joined = cached.join(session.sql("SELECT id * 2 AS x, max(k) AS m FROM numbers GROUP BY 1"), "x")
      assert(joined.count() == 5000)
      cached.unpersist()
    }
  }

  test("the record says how many tasks read parts of the keys, and what they read again") {
    val decision = decisionOf("SELECT id % 9999, count(*), max(k) FROM numbers GROUP BY 1", settings: _*)
    assert(decision.layout == "keys" && decision.tasks > 2 && decision.limitedByPartitions.isEmpty)
    assert(decision.bytesReadTwice >= decision.inputBytes)
    assert(decision.reason.contains("tasks keep the rows of some keys of 2 large shuffle partitions"))
    assert(decision.largestTaskBytes < decision.inputBytes / 2)
  }

  test("a sort, a repartition and a number that the query sets are not split by keys") {
    for (
      query <- Seq(
        "SELECT id FROM numbers ORDER BY id",
        "SELECT /*+ REPARTITION(k) */ id, k FROM numbers",
        "SELECT /*+ REPARTITION(2, k) */ id, k FROM numbers",
        "SELECT /*+ PARALLELISM(2) */ k, count(*) FROM numbers GROUP BY k"
      )
    ) assert(rows(query, settings: _*)._2 == 0)
  }
}
