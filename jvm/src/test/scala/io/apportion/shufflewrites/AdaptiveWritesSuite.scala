package io.apportion.shufflewrites

import io.apportion.SparkSuite
import io.apportion.report.{DecisionLog, DecisionRecord}
import org.apache.spark.apportion.Listeners
import org.apache.spark.sql.{DataFrame, Row, SparkSession}
import org.apache.spark.sql.apportion.exchange.{AdaptiveExchangeExec, TreeStatistics}
import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadExec, AdaptiveSparkPlanHelper, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.exchange.{ShuffleExchangeExec, ShuffleExchangeLike}
import org.scalatest.prop.TableDrivenPropertyChecks._

class AdaptiveWritesSuite extends SparkSuite with AdaptiveSparkPlanHelper {
  override protected def generatesCode: Boolean = true

  /** Also a quarter of `numbers`, which is written in all levels of groups too, and read by fewer tasks. */
  override protected def newSession(settings: (String, String)*): SparkSession = {
    val session = super.newSession(settings: _*)
    session.range(0, 5000, 1, 2).selectExpr("id", "id % 1000 AS k").createOrReplaceTempView("quarter")
    session
  }

  private val aggregate = "SELECT k, count(*), sum(id) FROM numbers GROUP BY k"

  /** From Spark 4.1 on, the aggregate above the union needs no shuffle. */
  private val inUnion =
    "SELECT k, sum(n) FROM (SELECT k, count(*) AS n FROM numbers GROUP BY k UNION ALL " +
      "SELECT k, count(*) FROM few GROUP BY k) GROUP BY k"

  private val queries = Table(
    "query",
    aggregate,
    "SELECT count(DISTINCT id), k FROM numbers GROUP BY k",
    "SELECT a.id, b.k FROM numbers a JOIN numbers b ON a.id = b.id",
    "SELECT a.id, b.k FROM quarter a LEFT JOIN few b ON a.id = b.id",
    "SELECT a.id, b.id FROM quarter a FULL JOIN few b ON a.id = b.id",
    "SELECT id FROM quarter WHERE id NOT IN (SELECT id FROM few)",
    "SELECT id, row_number() OVER (PARTITION BY k ORDER BY id) FROM quarter",
    "SELECT id, rank() OVER (PARTITION BY id % 3 ORDER BY id) FROM quarter",
    "SELECT k, id FROM quarter ORDER BY k DESC, id",
    "SELECT k, count(*) AS n FROM numbers GROUP BY k ORDER BY n, k",
    "SELECT id % 7, k FROM quarter INTERSECT SELECT id, k FROM few",
    "SELECT k, count(*) FROM numbers GROUP BY k UNION ALL SELECT id, count(*) FROM few GROUP BY id",
    inUnion,
    "SELECT /*+ REPARTITION(k) */ k, id FROM quarter",
    "SELECT /*+ REBALANCE(k) */ k, id FROM quarter",
    "SELECT k, count(*) FROM numbers WHERE id < 0 GROUP BY k",
    "SELECT * FROM numbers WHERE id = (SELECT max(id) FROM numbers GROUP BY k ORDER BY 1 DESC LIMIT 1)",
    "WITH c AS (SELECT k, count(*) n FROM numbers GROUP BY k) SELECT a.k FROM c a JOIN c b ON a.n = b.n AND a.k = b.k",
    "SELECT CASE WHEN id < 3750 THEN 1 ELSE id END AS hot, count(*), collect_list(k) FROM quarter GROUP BY 1"
  )

  /** Target sizes at which map tasks write the first, some and all levels. */
  private val targets = Seq("64mb", "16kb", "2kb")

  private def withoutBroadcasts(session: SparkSession): Unit =
    session.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")

  private def rowsOf(query: String, settings: (String, String)*): Seq[Row] = withSession(settings: _*) { session =>
    withoutBroadcasts(session)
    session.sql(query).collect().toSeq
  }

  private def exchanges(query: DataFrame): Seq[ShuffleExchangeLike] = {
    query.collect()
    collectWithSubqueries(query.queryExecution.executedPlan) { case stage: ShuffleQueryStageExec => stage.shuffle }
  }

  private def exchangesOf(query: String, settings: (String, String)*): Seq[ShuffleExchangeLike] =
    withSession(settings: _*) { session =>
      withoutBroadcasts(session)
      exchanges(session.sql(query))
    }

  /** Of a query that has run. */
  private def tasksOf(query: DataFrame): Seq[Int] =
    collect(query.queryExecution.executedPlan) { case read: AQEShuffleReadExec => read.partitionSpecs.size }

  test("rows are the same as with Spark's shuffles, at every level of groups") {
    forAll(queries) { query =>
      val expected = rowsOf(query, "enabled" -> "false", "spark.sql.shuffle.partitions" -> "8")
      targets.foreach { target =>
        val rows = rowsOf(query, "dataVolumePerTask" -> target, "minTaskVolume" -> "1kb")
        if (query.contains("ORDER BY n") || query.contains("k DESC")) assert(rows == expected, s"target $target")
        else assert(sorted(rows.map(withSortedArrays)) == sorted(expected.map(withSortedArrays)), s"target $target")
      }
    }
  }

  /** A row whose arrays have no order of their own. */
  private def withSortedArrays(row: Row): Row = Row.fromSeq(row.toSeq.map {
    case values: scala.collection.Seq[_] => values.map(_.toString).sorted.toSeq
    case other                           => other
  })

  test("rows are the same when ranges do not fit the groups") {
    val joined = "SELECT /*+ PARALLELISM(5) */ a.id, b.k FROM numbers a JOIN numbers b ON a.id = b.id"
    val counted = "SELECT /*+ PARALLELISM(7) */ id, count(*) FROM numbers GROUP BY id"
    for (query <- Seq(joined, counted)) {
      val expected = sorted(rowsOf(query, "enabled" -> "false"))
      targets.foreach(target => assert(sorted(rowsOf(query, "dataVolumePerTask" -> target)) == expected))
    }
  }

  test("rows are the same when Spark cuts the ranges, or reads map outputs locally") {
    val joined = "SELECT a.id, b.k FROM numbers a JOIN few b ON a.id = b.id"
    val settings = Seq(
      Seq("spark.sql.adaptive.advisoryPartitionSizeInBytes" -> "4kb"),
      Seq("spark.sql.adaptive.localShuffleReader.enabled" -> "true", "dataVolumePerTask" -> "1kb")
    )
    val expected = sorted(rowsOf(joined, "enabled" -> "false"))
    settings.foreach { some =>
      assert(sorted(rowsOf(joined, some: _*)) == expected)
      withSession(some: _*)(session => assert(sortedRows(session.sql(joined)) == expected))
    }
  }

  test("Spark's layout has the rows that came before their group was divided") {
    // Each map task has more rows than it keeps: first those of many keys, and then of the keys of every other partition.
    // Spark splits these partitions. If the ones between them had no bytes, no task would read them.
    val heavy = rowsOf(
      "SELECT min(id) FROM (SELECT id, pmod(hash(id), 256) AS p FROM range(9999)) WHERE p < 16 AND p % 2 = 0 GROUP BY p"
    ).map(_.getLong(0))
    val query =
      s"""SELECT count(*), sum(id), sum(length(text)) FROM (
         |  SELECT /*+ REBALANCE(k) */ id, k, md5(CAST(id AS STRING)) AS text FROM (
         |    SELECT id, IF(id % 200000 < 60000, id, array(${heavy.mkString(", ")})[id % 8]) AS k
         |    FROM range(0, 400000, 1, 2)))""".stripMargin
    val splits = Seq(
      "spark.sql.adaptive.forceOptimizeSkewedJoin" -> "true",
      "spark.sql.adaptive.advisoryPartitionSizeInBytes" -> "30kb",
      "spark.sql.adaptive.coalescePartitions.parallelismFirst" -> "false",
      "spark.sql.adaptive.coalescePartitions.minPartitionSize" -> "1kb",
      "dataVolumePerTask" -> "4mb"
    )
    withSession(splits: _*) { session =>
      val rows = session.sql(query).collect().toSeq
      val decision = DecisionLog.of(session).all.head
      assert(decision.layout == "unchanged" && decision.levels.size > 1)
      assert(rows == rowsOf(query, "enabled" -> "false"))
    }
  }

  test("rows of few keys take about as many bytes as under Spark, however few blocks they are in") {
    for (rows <- Seq(50000, 400000)) {
      val query = s"SELECT /*+ REPARTITION(k) */ concat('customer-', pmod(hash(id), 2000)) AS k, hash(id, 1) AS v " +
        s"FROM range(0, $rows, 1, 2)"
      def written(mode: String) =
        withSession("mode" -> mode, "dataVolumePerTask" -> "64mb")(decisionWithoutRows(_, query).inputBytes)
      val (own, sparks) = (written("reactive"), written("observe"))
      assert(own <= 1.05 * sparks, s"$own bytes in place of $sparks")
    }
  }

  test("a small shuffle is written in few blocks, and a large one in as many as its tasks need") {
    def decided(target: String) = decisionOf(aggregate, "dataVolumePerTask" -> target, "minTaskVolume" -> target)
    val small = decided("64mb")
    assert(small.subpartitions == 256 && small.levels == Seq(2) && small.blocks.contains(4L))
    assert(small.sparksBlocks.contains(400L) && small.bytesReadTwice == 0)
    assert(small.reason.contains("written in 4 blocks instead of up to 400"))
    val large = decided("200b")
    assert(large.subpartitions == 2048)
    assert(large.tasks > 16 && large.levels.last > 16 && large.blocks.exists(_ > 32))
    assert(decided(targets.last).levels.last == 256)
  }

  test("large rows of few keys are written in a block for each key, as under Spark") {
    val query =
      "SELECT /*+ REPARTITION(k) */ id % 4 AS k, sha2(string(id), 256) AS text FROM range(0, 20000, 1, 2)"
    val decision = decisionOf(query)
    assert(decision.levels == Seq(256) && decision.blocks.contains(8L))
  }

  test("tasks that read several shuffles read few of their bytes twice") {
    // More rows than a map task keeps
    def side(factor: Int) = s"(SELECT id AS i, id * $factor AS v FROM range(0, 600000, 1, 2))"
    val joined = s"SELECT a.v, b.v, c.v FROM ${side(2)} a JOIN ${side(3)} b ON a.i = b.i JOIN ${side(4)} c ON b.i = c.i"
    val decision = decisionOf(joined, "dataVolumePerTask" -> "700kb", "spark.sql.autoBroadcastJoinThreshold" -> "-1")
    assert(decision.shuffles.size == 3 && decision.tasks > 16)
    assert(decision.bytesReadTwice < decision.inputBytes / 4)
  }

  test("a number of tasks that is no power of two is written in fewer blocks than Spark writes") {
    val decision = decisionOf(aggregate, "parallelism" -> "6")
    assert(decision.tasks == 6 && decision.levels == Seq(32) && decision.blocks.exists(_ <= 64))
  }

  /** The decision for a query whose many rows are thrown away. */
  private def decisionWithoutRows(session: SparkSession, query: String): DecisionRecord = {
    val before = DecisionLog.of(session).all.size
    session.sql(query).write.format("noop").mode("overwrite").save()
    only(DecisionLog.of(session).all.drop(before))
  }

  test("map tasks start with groups as fine as an earlier run of the same shuffle needed") {
    withSession("dataVolumePerTask" -> "128mb") { session =>
      val query = "SELECT md5(string(id)), count(*) FROM range(0, 400000, 1, 2) GROUP BY 1"
      def firstLevel = decisionWithoutRows(session, query).levels.head
      assert(Seq(firstLevel, firstLevel) == Seq(2, 16))
    }
  }

  test("map tasks start with groups whose rows fit the memory of a task in an earlier run") {
    val query = "SELECT id, row_number() OVER (PARTITION BY md5(string(id)) ORDER BY id) FROM range(0, 250000, 1, 2)"
    for ((fraction, groups) <- Seq(0.075 -> 16, 0.025 -> 32, 0.0125 -> 64, 0.0025 -> 256))
      withSession("memory.fraction" -> fraction.toString) { session =>
        decisionWithoutRows(session, query)
        assert(decisionWithoutRows(session, query).levels == Seq(groups))
      }
  }

  test("the number of partitions is one for all shuffles of a query") {
    forAll(queries)(query => assert(exchangesOf(query).map(_.outputPartitioning.numPartitions).distinct.size <= 1))
  }

  test("the number of partitions is at least what the user sets, a parallelism, and what the inputs need") {
    def partitions(query: String, settings: (String, String)*) =
      exchangesOf(query, settings: _*).map(_.outputPartitioning.numPartitions)
    assert(partitions(aggregate) == Seq(256))
    assert(partitions(aggregate, "spark.sql.shuffle.partitions" -> "300") == Seq(512))
    assert(partitions(aggregate, "spark.sql.shuffle.partitions" -> "8") == Seq(8))
    // Planned only, as many tasks take long. Other tests run 300 tasks, and tasks of 200 bytes.
    def planned(query: String, settings: (String, String)*) = withSession(settings: _*) { session =>
      val plan = session.sql(query).queryExecution.executedPlan
      collect(plan) { case e: ShuffleExchangeLike => e.outputPartitioning.numPartitions }
    }
    assert(planned(aggregate.replace("SELECT", "SELECT /*+ PARALLELISM(300) */")) == Seq(1024))
    assert(planned(aggregate.replace("SELECT", "SELECT /*+ PARALLELISM(3000) */")) == Seq(8192))
    // 20,000 rows of 8 bytes
    assert(planned(aggregate, "dataVolumePerTask" -> "200b") == Seq(2048))
  }

  test("map tasks also decide how finely they write where a union keeps Spark's number of partitions") {
    since("4.1")
    for (n <- Seq(200, 30, 7)) {
      val decision = decisionOf(inUnion, "spark.sql.shuffle.partitions" -> n.toString)
      assert(decision.subpartitions == n && decision.shuffles.size == 2)
      assert(decision.blocks.exists(_ <= 4 * decision.levels.head) && decision.levels.size == 1)
    }
  }

  test("an explicit parallelism above Spark's number of partitions works") {
    withSession() { session =>
      val query = session.sql(aggregate.replace("SELECT", "SELECT /*+ PARALLELISM(300) */"))
      assert(exchanges(query).map(_.outputPartitioning.numPartitions) == Seq(1024))
      assert(tasksOf(query) == Seq(300))
    }
  }

  test("a small sorted result is one range, and each task of a large one reads several ranges") {
    def partitions(settings: (String, String)*) = {
      val exchange = exchangesOf("SELECT k, id FROM numbers ORDER BY id", settings: _*)
      exchange.map(_.numPartitions)
    }
    assert(partitions() == Seq(1))
    assert(partitions("minTaskVolume" -> "1kb") == Seq(8))
    assert(partitions("dataVolumePerTask" -> "10kb").forall(_ >= 32))
  }

  test("a sort into many ranges samples no more keys than Spark, as the driver holds them") {
    val onePerPartition = "spark.sql.execution.rangeExchange.sampleSizePerPartition" -> "1"
    val exchange = exchangesOf("SELECT k, id FROM numbers ORDER BY id", "parallelism" -> "4096", onePerPartition)
    // Spark takes 3 samples for each of 200 partitions, and each can end a range.
    assert(exchange.head.numPartitions <= 3 * 200 + 1)
  }

  test("Spark's reuse of equal exchanges stays the same") {
    val query = queries.find(_.startsWith("WITH")).get
    def shuffles(settings: (String, String)*) = exchangesOf(query, settings: _*).map(_.id).distinct.size
    assert(shuffles() == shuffles("enabled" -> "false"))
  }

  test("EXPLAIN shows Spark's own exchange before a query runs, and an exchange of the same form afterwards") {
    withSession() { session =>
      val query = session.sql(aggregate)
      val before = query.queryExecution.executedPlan
      assert(collect(before) { case node: ShuffleExchangeExec => node }.size == 1)
      query.collect()
      val after = query.queryExecution.executedPlan
      val exchange = collectFirst(after) { case stage: ShuffleQueryStageExec => stage.shuffle }.get
      assert(exchange.isInstanceOf[AdaptiveExchangeExec] && after.toString.contains("Exchange hashpartitioning(k"))
      assert(!after.toString.contains("AdaptiveExchange"))
    }
  }

  private val byFiles = "written by Spark, as "

  private val plain = Table(
    ("settings", "reason"),
    (Seq("adaptiveWrites" -> "false"), "spark.apportion.adaptiveWrites is false"),
    (Seq("rules.disabled" -> "DecideShuffleReads"), ""),
    (Seq("rules.disabled" -> "AdaptiveWrites"), ""),
    (Seq("mode" -> "observe"), ""),
    (Seq("enabled" -> "false"), "")
  )

  test("Spark writes its shuffles in its own number of partitions where adaptive writes are off") {
    forAll(plain) { (settings, reason) =>
      val shuffles = exchangesOf(aggregate, settings: _*)
      assert(shuffles.map(_.getClass.getSimpleName) == Seq("ShuffleExchangeExec"))
      assert(shuffles.map(_.outputPartitioning.numPartitions) == Seq(200))
      if (reason.nonEmpty) assert(decisionOf(aggregate, settings: _*).sources("subpartitions") == byFiles + reason)
    }
  }

  for (
    (conf, reason) <- Seq(
      ("spark.shuffle.push.enabled" -> "true", "spark.shuffle.push.enabled is true"),
      ("spark.shuffle.useOldFetchProtocol" -> "true", "spark.shuffle.useOldFetchProtocol is true"),
      ("spark.plugins" -> "org.apache.gluten.GlutenPlugin", "spark.plugins names another engine")
    )
  )
    test(s"Spark writes its shuffles itself if the application starts with ${conf._1}") {
      val decision = Listeners.withConf(spark.sparkContext, conf)(decisionOf(aggregate))
      assert(decision.sources("subpartitions") == byFiles + reason && decision.levels.isEmpty)
    }

  test("without Spark's coalescing, each shuffle partition has a task of its own, unless a parallelism is set") {
    val off = Seq("spark.sql.adaptive.coalescePartitions.enabled" -> "false", "spark.sql.shuffle.partitions" -> "30")
    val decision = decisionOf(aggregate, off: _*)
    assert(decision.kind == "unchanged" && decision.tasks == 30)
    assert(decision.reason.contains("spark.sql.adaptive.coalescePartitions.enabled is false"))
    assert(decisionOf(aggregate, off :+ ("parallelism" -> "3"): _*).tasks == 3)
  }

  private val sparks = Table(
    "query",
    "SELECT /*+ REPARTITION(7) */ id FROM numbers",
    "SELECT /*+ REPARTITION(7, k) */ id, k FROM numbers",
    "SELECT /*+ REBALANCE */ id FROM numbers",
    "SELECT count(*) FROM numbers"
  )

  test("round robin, a single partition, and numbers that the query sets stay Spark's") {
    forAll(sparks)(query => assert(!exchangesOf(query).exists(_.isInstanceOf[AdaptiveExchangeExec])))
  }

  test("the shuffle that the last stage of a cached plan reads stays Spark's") {
    withSession("spark.sql.shuffle.partitions" -> "30") { session =>
      val cached = session.sql(aggregate).cache()
      try {
        cached.collect()
        val plan = cached.queryExecution.withCachedData
        val shuffles = plan.collect { case relation: org.apache.spark.sql.execution.columnar.InMemoryRelation =>
          collect(relation.cachedPlan) { case stage: ShuffleQueryStageExec => stage.shuffle }
        }.flatten
        assert(shuffles.nonEmpty && !shuffles.exists(_.isInstanceOf[AdaptiveExchangeExec]))
      } finally cached.unpersist()
    }
  }

  test("the bytes of each block are known where a map task has more blocks than Spark keeps sizes of") {
    val half = "SELECT id, rank() OVER (PARTITION BY if(id % 2 = 0, 1, id) ORDER BY id) FROM numbers"
    withSession("dataVolumePerTask" -> "8kb", "spark.sql.shuffle.partitions" -> "1500") { session =>
      val query = session.sql(half)
      query.collect()
      val stages = collect(query.queryExecution.executedPlan) { case stage: ShuffleQueryStageExec => stage }
      val bytes: Array[Long] = stages.flatMap(_.mapStats).collect { case tree: TreeStatistics => tree.blockBytes }.head
      assert(bytes.length > 2000 && bytes.max > bytes.sum / 5)
    }
    def reason(settings: (String, String)*) =
      decisionOf(
        aggregate,
        Seq("ranges" -> "balanced", "spark.sql.shuffle.partitions" -> "2001") ++ settings: _*
      ).reason
    val averages = "Spark knows only average sizes above 2000 shuffle partitions"
    assert(!reason().contains(averages) && reason("rules.disabled" -> "AdaptiveWrites").contains(averages))
  }

  test("an input whose rows may differ in another attempt is written in one block per partition") {
    withSession("spark.sql.execution.sortBeforeRepartition" -> "false") { session =>
      val unordered = "SELECT k, count(*) AS n FROM numbers GROUP BY k"
      val query =
        session.sql(s"SELECT n, max(k) FROM (SELECT /*+ REPARTITION(4) */ k, k + n AS n FROM ($unordered)) GROUP BY n")
      query.collect()
      val last = collect(query.queryExecution.executedPlan) { case stage: ShuffleQueryStageExec => stage.shuffle }.head
      assert(last.isInstanceOf[AdaptiveExchangeExec])
      assert(last.metrics(TreeStatistics.BlocksMetric).value > 100)
    }
  }
}
