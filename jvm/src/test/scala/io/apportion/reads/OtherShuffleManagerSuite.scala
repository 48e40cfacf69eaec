package io.apportion.reads

import io.apportion.SparkSuite
import io.apportion.report.{DecisionLog, DecisionRecord}
import org.apache.spark.apportion.OtherShuffleManager
import org.apache.spark.sql.{Row, SparkSession}

/** What a remote shuffle service is slow at is not done, but where Spark does it. */
class OtherShuffleManagerSuite extends SparkSuite {
  override protected def submitTimeConf: Map[String, String] =
    Map("spark.shuffle.manager" -> classOf[OtherShuffleManager].getName)

  private val settings = Seq("mode" -> "active", "dataVolumePerTask" -> "256KB", "spark.sql.shuffle.partitions" -> "32")

  private val allowed = "splitsWithOtherShuffleManagers" -> "true"

  override protected def newSession(settings: (String, String)*): SparkSession = {
    val session = super.newSession(settings: _*)
    session
      .range(0, 30000, 1, 40)
      .selectExpr("CASE WHEN id % 3 > 0 THEN id % 2 ELSE id END AS k", "sha2(string(id), 256) AS word")
      .createOrReplaceTempView("heavy")
    session
      .range(0, 10000, 1, 4)
      .selectExpr("id AS k", "sha2(string(-id), 256) AS name")
      .createOrReplaceTempView("light")
    session
  }

  private val join = "SELECT count(*), max(word), max(name) FROM heavy JOIN light USING (k)"

  private lazy val rowsOfSpark: Seq[Row] =
    withSession(settings :+ shuffled :+ ("enabled" -> "false"): _*)(_.sql(join).collect().toSeq)

  /** The decision about the heavy rows; the results are Spark's. */
  private def heaviest(more: (String, String)*): DecisionRecord = withSession(settings ++ more: _*) { session =>
    val rows = session.sql(join).collect().toSeq
    val decisions = DecisionLog.of(session).all
    assert(rows == rowsOfSpark)
    decisions.filter(_.subpartitions > 1).maxBy(_.inputBytes)
  }

  private val shuffled = "spark.sql.autoBroadcastJoinThreshold" -> "-1"

  test("skewed partitions are not split with another shuffle manager") {
    val decision = heaviest(shuffled)
    assert(
      decision.layout == "even" && decision.reason.contains("not split, as reading only some map outputs may be slow")
    )
    assert(decision.reason.contains("shuffle manager OtherShuffleManager"))
  }

  test("skewed partitions are split with another shuffle manager if a setting allows it") {
    assert(heaviest(shuffled, allowed).layout == "skew")
  }

  test("skewed partitions are not split if Celeborn checks the map outputs that tasks read") {
    val decision = heaviest(shuffled, allowed, "spark.celeborn.client.shuffle.integrityCheck.enabled" -> "true")
    assert(decision.layout == "even" && decision.reason.contains("integrityCheck.enabled is true"))
  }

  private val splitBySpark = Seq(
    "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes" -> "2KB",
    "spark.sql.adaptive.skewJoin.skewedPartitionFactor" -> "2",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes" -> "8KB"
  )

  test("partitions that Spark splits stay split with another shuffle manager") {
    val decision = heaviest(shuffled +: splitBySpark: _*)
    assert(
      decision.layout == "unchanged" && decision.reason.startsWith("Unchanged: Spark split its skewed partitions")
    )
  }

  private val broadcast = Seq(
    shuffled,
    "spark.sql.adaptive.autoBroadcastJoinThreshold" -> "1MB"
  )

  test("local reads that Spark plans stay unchanged with another shuffle manager") {
    val decision = heaviest(broadcast: _*)
    assert(decision.layout == "unchanged" && decision.reason.startsWith("Unchanged: Spark reads it locally"))
    assert(decision.inputBytes > 0)
  }

  test("map outputs are read locally with another shuffle manager if a setting allows it") {
    assert(heaviest(broadcast :+ allowed: _*).layout == "local")
  }
}
