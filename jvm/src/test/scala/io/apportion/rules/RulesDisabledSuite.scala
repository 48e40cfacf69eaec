package io.apportion.rules

import io.apportion.{ApportionExtension, SparkSuite}
import io.apportion.groups.UserRepartitions
import io.apportion.hints.{AssignBlocks, InvalidHint, ResolveBlockHints}
import io.apportion.joins.{DemoteBroadcasts, PreferHashJoins, RememberBroadcasts}
import io.apportion.policies.ApplyPolicies
import io.apportion.reads.{DecideShuffleReads, LocalReads, ReportDecisions}
import io.apportion.resources.AwaitSlots
import io.apportion.scans.ScanTasks
import io.apportion.settings.{SettingRegistry, Settings}
import io.apportion.shufflewrites.AdaptiveWrites
import io.apportion.writes.{RebalanceWrites, SizeFiles}
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanHelper, ShuffleQueryStageExec}
import org.apache.spark.sql.internal.SQLConf
import org.scalatest.prop.TableDrivenPropertyChecks._

/** `rules.disabled` switches off each rule by itself. */
class RulesDisabledSuite extends SparkSuite with AdaptiveSparkPlanHelper {
  private val names = {
    ApportionExtension.registerSettings()
    SettingRegistry.rules.map(_.name)
  }

  private val aggregate = "SELECT k, count(*) FROM numbers GROUP BY k"
  private val hinted = "SELECT /*+ PARALLELISM(5) */ k, count(*) FROM numbers GROUP BY k"

  /** With this number of shuffle partitions, Spark drops the repartition. With another one, it keeps it. */
  private def repartitioned(n: Int) = s"SELECT /*+ REPARTITION($n, k) */ k, count(*) FROM numbers GROUP BY k"

  private val queries = Seq(
    aggregate,
    hinted,
    repartitioned(8),
    "SELECT a.id, count(*) FROM numbers a JOIN numbers b ON a.id = b.k GROUP BY a.id",
    "SELECT k, count(*) FROM orders GROUP BY k",
    "WITH c AS (SELECT k, count(*) AS n FROM numbers GROUP BY k) SELECT * FROM c a JOIN c b ON a.n = b.k",
    repartitioned(20),
    """SELECT a.id, b.m FROM numbers a LEFT JOIN (
      |  SELECT k, max(id) AS m FROM numbers GROUP BY k HAVING max(id) % 997 = 3) b ON a.id = b.m""".stripMargin
  )

  override protected def beforeAll(): Unit = {
    super.beforeAll()
    spark.range(0, 20000, 1, 4).selectExpr("id", "id % 10 AS k").write.saveAsTable("orders")
  }

  override protected def afterAll(): Unit =
    try spark.sql("DROP TABLE orders")
    finally super.afterAll()

  private def rows(query: String, settings: (String, String)*): Seq[String] =
    withSession(settings :+ ("spark.sql.shuffle.partitions" -> "8"): _*)(
      _.sql(query).collect().map(_.toString).sorted.toSeq
    )

  private lazy val rowsBySpark = queries.map(rows(_, "enabled" -> "false"))

  names.foreach { rule =>
    test(s"queries give the same rows without $rule") {
      queries.zip(rowsBySpark).foreach { case (query, expected) =>
        assert(rows(query, "rules.disabled" -> rule) == expected, query)
      }
    }
  }

  /** What is seen of a rule: with it, and without it. */
  private def effect[T](rule: String)(seen: Seq[(String, String)] => T): (T, T) =
    (seen(Nil), seen(Seq("rules.disabled" -> rule)))

  private def shufflePartitions(query: String, settings: (String, String)*): Seq[Int] =
    withSession(settings: _*) { session =>
      val frame = session.sql(query)
      frame.collect()
      collect(frame.queryExecution.executedPlan) { case stage: ShuffleQueryStageExec =>
        stage.shuffle.outputPartitioning.numPartitions
      }
    }

  private def layouts(query: String, settings: (String, String)*): Seq[String] =
    decisionsOf(query, settings: _*).map(_.layout).distinct.sorted

  test("without AdaptiveWrites, shuffles have Spark's number of partitions") {
    val (own, sparks) =
      effect("AdaptiveWrites")(off => shufflePartitions(aggregate, off :+ ("spark.sql.shuffle.partitions" -> "77"): _*))
    assert(own != Seq(77) && sparks == Seq(77))
  }

  test("without DecideShuffleReads, no decision about a shuffle is recorded") {
    assert(effect("DecideShuffleReads")(layouts(aggregate, _: _*)) == ((Seq("even"), Nil)))
  }

  test("without ReportDecisions, only decisions about scans are recorded") {
    val query = "SELECT k, count(*) FROM orders GROUP BY k"
    assert(effect("ReportDecisions")(layouts(query, _: _*)) == ((Seq("even", "files"), Seq("files"))))
  }

  test("without ScanTasks, only decisions about shuffles are recorded") {
    val query = "SELECT k, count(*) FROM orders GROUP BY k"
    assert(effect("ScanTasks")(layouts(query, _: _*)) == ((Seq("even", "files"), Seq("even"))))
  }

  test("without LocalReads, no layout becomes local") {
    val (local, others) = effect("LocalReads") { off =>
      layouts(queries.last, off ++ Seq("parallelism" -> "7", "spark.sql.autoBroadcastJoinThreshold" -> "20KB"): _*)
    }
    assert(local.contains("local") && !others.contains("local"))
  }

  test("without AwaitSlots, a query does not wait for slots") {
    rows(aggregate, "rules.disabled" -> "AwaitSlots", "resources.minSlots" -> "1000", "resources.timeout" -> "1s")
  }

  test("without UserRepartitions, a repartition that Spark drops does not keep its number") {
    def partitions(settings: (String, String)*) =
      shufflePartitions(repartitioned(200), settings :+ ("mode" -> "active"): _*)
    val (kept, lost) = effect("UserRepartitions")(partitions(_: _*))
    assert(kept == Seq(200) && lost != Seq(200))
  }

  test("without AdaptiveWrites, UserRepartitions does not pin shuffles below a repartition that Spark keeps") {
    val query = "SELECT /*+ REPARTITION(9, n) */ * FROM (SELECT k, count(*) AS n FROM numbers GROUP BY k)"
    val (all, without) = effect("AdaptiveWrites")(off => decisionsOf(query, off: _*).map(_.kind == "unchanged"))
    assert(all == without)
  }

  private def setBy(settings: (String, String)*): Option[String] =
    decisionsOf(hinted, settings: _*).flatMap(_.sources.get("parallelism")).headOption

  forAll(Table("rule", "ResolveBlockHints", "AssignBlocks")) { rule =>
    test(s"without $rule, a hint has no effect") {
      assert(effect(rule)(setBy(_: _*)) == ((Some("hint on the query block, line 1"), Some("default"))))
    }
  }

  test("hints are checked without AssignBlocks, and not without ResolveBlockHints") {
    val wrong = "SELECT /*+ PARALLELISM(0) */ k FROM numbers"
    intercept[InvalidHint](rows(wrong, "hints.strict" -> "true", "rules.disabled" -> "AssignBlocks"))
    rows(wrong, "hints.strict" -> "true", "rules.disabled" -> "ResolveBlockHints")
  }

  test("rules.disabled takes several names between commas") {
    assert(layouts(queries(4), "rules.disabled" -> " ScanTasks, ReportDecisions,") == Nil)
  }

  test("rules.disabled refuses an unknown name with the allowed names and the nearest one") {
    withSession() { session =>
      val error =
        intercept[IllegalArgumentException](session.sql("SET spark.apportion.rules.disabled=ScanTasks,LocalRead"))
      Seq("Unknown name LocalRead", "Did you mean LocalReads?", "AdaptiveWrites, ApplyPolicies, AssignBlocks")
        .foreach(part => assert(error.getMessage.contains(part)))
      assert(Settings.RulesDisabled.get(session.sessionState.conf).isEmpty)
    }
  }

  test("the value of rules.disabled is split once") {
    val conf = new SQLConf
    conf.setConfString(Settings.RulesDisabled.key, "ScanTasks,LocalReads")
    val first = Settings.RulesDisabled.get(conf)
    assert(first == Set("ScanTasks", "LocalReads") && (Settings.RulesDisabled.get(conf) eq first))
  }

  test("every rule of the extension has a name") {
    val guarded = Seq(
      ResolveBlockHints(spark),
      ApplyPolicies(spark),
      AssignBlocks(spark),
      ScanTasks(spark, Nil),
      UserRepartitions(spark),
      AdaptiveWrites(spark, Nil),
      DemoteBroadcasts(spark),
      new PreferHashJoins(spark),
      AwaitSlots(spark, Nil),
      DecideShuffleReads(spark, Nil),
      LocalReads(spark),
      SizeFiles(spark),
      RebalanceWrites(spark),
      ReportDecisions(spark, Nil, Nil),
      RememberBroadcasts(spark)
    )
    assert(guarded.map(_.publicName).sorted == names)
  }
}
