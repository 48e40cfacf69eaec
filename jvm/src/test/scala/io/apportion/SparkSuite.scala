package io.apportion

import io.apportion.report.{DecisionLog, DecisionRecord}
import org.apache.spark.SPARK_VERSION
import org.apache.spark.apportion.DecisionMetrics
import org.apache.spark.sql.{ActiveSession, DataFrame, Row, SparkSession, SparkSessionExtensions}
import org.scalatest.{BeforeAndAfterAll, Failed, Outcome}
import org.scalatest.funsuite.AnyFunSuite

/** A suite with a Spark of its own, two slots wide, and small tables: `numbers` (id, k of 1,000 values) and `few` (30 rows). */
trait SparkSuite extends AnyFunSuite with BeforeAndAfterAll {
  protected def extension: SparkSessionExtensions => Unit = new ApportionExtension
  protected def submitTimeConf: Map[String, String] = Map.empty

  /** Whether Spark compiles queries. To compile a query that runs once takes longer than to interpret it. */
  protected def generatesCode: Boolean = false

  /** A query that sleeps for 1.5 seconds on two slots, and computes nothing meanwhile. */
  protected val sleepingQuery: String =
    "SELECT k, count(*) FROM few WHERE coalesce(reflect('java.lang.Thread', 'sleep', 100L), '') != 'x' GROUP BY k"

  protected lazy val spark: SparkSession = {
    val builder =
      SparkSession.builder().master("local[2]").config("spark.ui.enabled", "false").withExtensions(extension)
    if (!generatesCode) {
      builder.config("spark.sql.codegen.wholeStage", "false").config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    }
    submitTimeConf.foreach { case (key, value) => builder.config(key, value) }
    builder.getOrCreate()
  }

  /** Whether rules fail in these tests, on purpose. */
  protected def rulesFail: Boolean = false

  private def ruleFailures: Long =
    DecisionMetrics.ofActive(spark.sparkContext).fold(0L)(_.metricRegistry.counter("rules.failures").getCount)

  /** A test must not only get its rows: no rule may have failed on the way. */
  override protected def withFixture(test: NoArgTest): Outcome = {
    val before = ruleFailures
    val outcome = super.withFixture(test)
    if (outcome.isSucceeded && !rulesFail && ruleFailures > before) Failed("a rule failed, and the log says which")
    else outcome
  }

  override protected def beforeAll(): Unit = createTables(spark)

  override protected def afterAll(): Unit = {
    spark.stop()
    SparkSession.clearActiveSession()
    SparkSession.clearDefaultSession()
  }

  private def createTables(session: SparkSession): Unit = {
    session.range(0, 20000, 1, 2).selectExpr("id", "id % 1000 AS k").createOrReplaceTempView("numbers")
    session.range(0, 30, 1, 2).selectExpr("id", "id % 100 AS k").createOrReplaceTempView("few")
  }

  /** A session of its own with these settings; names without `spark.` are Apportion's. */
  protected def newSession(settings: (String, String)*): SparkSession = {
    val session = spark.newSession()
    createTables(session)
    settings.foreach { case (name, value) =>
      session.conf.set(if (name.startsWith("spark.")) name else s"spark.apportion.$name", value)
    }
    session
  }

  protected def withSession[T](settings: (String, String)*)(body: SparkSession => T): T = {
    val session = newSession(settings: _*)
    ActiveSession.in(session)(body(session))
  }

  /** The decisions for one query, in the order they were made. */
  protected def decisionsOf(query: String, settings: (String, String)*): Seq[DecisionRecord] =
    withSession(settings: _*)(session => decisionsOf(session, session.sql(query)))

  /** The decision for a query that needs only one. */
  protected def decisionOf(query: String, settings: (String, String)*): DecisionRecord =
    only(decisionsOf(query, settings: _*))

  /** Skips a test on versions of Spark that are older than this. */
  protected def since(version: String): Unit = assume(SPARK_VERSION >= version, s"since Spark $version")

  /** Rows of a query, in the order of their texts. */
  protected def sortedRows(query: DataFrame): Seq[Row] = sorted(query.collect().toSeq)

  /** `sortBy` would make both texts for each comparison. */
  protected def sorted(rows: Seq[Row]): Seq[Row] = rows.map(row => row.toString -> row).sortBy(_._1).map(_._2)

  protected def only(decisions: Seq[DecisionRecord]): DecisionRecord = {
    assert(decisions.size == 1)
    decisions.head
  }

  protected def decisionsOf(session: SparkSession, query: DataFrame): Seq[DecisionRecord] = {
    val before = DecisionLog.of(session).all.size
    query.collect()
    DecisionLog.of(session).all.drop(before)
  }
}
