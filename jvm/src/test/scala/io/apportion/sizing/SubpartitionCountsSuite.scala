package io.apportion.sizing

import io.apportion.SparkSuite
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanExec, AdaptiveSparkPlanHelper, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.exchange.{ReusedExchangeExec, ShuffleExchangeExec, ShuffleExchangeLike}
import org.apache.spark.sql.execution.joins.BroadcastHashJoinExec
import org.apache.spark.sql.{DataFrame, SparkSession}
import org.scalatest.prop.TableDrivenPropertyChecks._

/** How many subpartitions shuffles get before they run. Tables of range() have 8 bytes a row. */
class SubpartitionCountsSuite extends SparkSuite with AdaptiveSparkPlanHelper {

  /** Only bytes decide, whatever memory the machine has. */
  private val active =
    Seq("mode" -> "active", "memory.enabled" -> "false", "spark.sql.autoBroadcastJoinThreshold" -> "-1")

  /** Of the exchanges of a plan that has not run, from the top. */
  private def planned(query: DataFrame): Seq[Int] = numbers(initialPlan(query))

  private def initialPlan(query: DataFrame): SparkPlan =
    query.queryExecution.executedPlan.collectFirst { case plan: AdaptiveSparkPlanExec => plan.initialPlan }.get

  private def numbers(plan: SparkPlan): Seq[Int] =
    plan.collect { case exchange: ShuffleExchangeLike => exchange.outputPartitioning.numPartitions }

  private val cases = Table[String, String, Seq[(String, String)], Seq[Int]](
    ("case", "query", "settings", "subpartitions"),
    (
      "a small table gets two shuffle partitions",
      "SELECT id * 2 AS k, count(*) FROM range(1000) GROUP BY k",
      Nil,
      Seq(2)
    ),
    (
      "an aggregate of 8 GB gets Spark's number",
      "SELECT id * 2 AS k, count(*) FROM range(1000000000) GROUP BY k",
      Nil,
      Seq(200)
    ),
    (
      "an aggregate of 200 GB, which may leave little, gets Spark's number",
      "SELECT id * 2 AS k, count(*) FROM range(25000000000) GROUP BY k",
      Nil,
      Seq(200)
    ),
    (
      "a sort of 200 GB gets more than Spark's number",
      "SELECT id * 2 AS k FROM range(25000000000) ORDER BY k",
      Nil,
      Seq(512)
    ),
    (
      "a sort of 200 GB in small tasks gets at most 2^20 blocks",
      "SELECT id * 2 AS k FROM range(25000000000) ORDER BY k",
      Seq("dataVolumePerTask" -> "1MB", "maxBlocksPerShuffle" -> "1048576"),
      Seq(512)
    ),
    (
      "slots that a stage can fill raise the number",
      "SELECT id * 2 AS k, count(*) FROM range(1000000) GROUP BY k",
      Seq("mode" -> "reactive"),
      Seq(4)
    ),
    (
      "both sides of a join get a number for the sum of their bytes",
      "SELECT a.id FROM range(100000000) a JOIN range(100000) b ON a.id = b.id",
      Nil,
      Seq(32, 32)
    ),
    (
      "a global sort gets a number for its bytes",
      "SELECT id * 2 AS k FROM range(100000000) ORDER BY k",
      Nil,
      Seq(32)
    ),
    (
      "a rollup, which writes each row several times, gets Spark's number",
      "SELECT id, id % 7, count(*) FROM range(100000000) GROUP BY ROLLUP (id, id % 7)",
      Nil,
      Seq(200)
    ),
    ("the number of a repartition stays", "SELECT /*+ REPARTITION(50) */ * FROM range(1000)", Nil, Seq(50)),
    (
      "the number of a repartition by columns stays",
      "SELECT /*+ REPARTITION(50, id) */ * FROM range(1000)",
      Nil,
      Seq(50)
    ),
    ("the number of a rebalance stays", "SELECT /*+ REBALANCE(50, id) */ * FROM range(1000)", Nil, Seq(50)),
    (
      "a repartition by columns without a number gets a number for its bytes",
      "SELECT /*+ REPARTITION(id) */ * FROM range(1000)",
      Nil,
      Seq(2)
    ),
    (
      "an exchange that must match a repartition of the query keeps Spark's number",
      "SELECT a.id FROM (SELECT /*+ REPARTITION(50, id) */ * FROM range(1000)) a JOIN range(1000) b ON a.id = b.id",
      Nil,
      Seq(200, 200)
    ),
    (
      "a single partition stays a single partition",
      "SELECT count(*) FROM range(1000)",
      Nil,
      Seq(1)
    ),
    (
      "an explode, which multiplies rows by an unknown factor, gets Spark's number",
      "SELECT x, count(*) FROM (SELECT explode(sequence(0, id)) AS x FROM range(1000)) GROUP BY x",
      Nil,
      Seq(256)
    ),
    (
      "a shuffle gets Spark's number if estimates are off",
      "SELECT id * 2 AS k, count(*) FROM range(1000) GROUP BY k",
      Seq("subpartitions" -> "spark"),
      Seq(256)
    ),
    (
      "maxParallelism limits the number",
      "SELECT id * 2 AS k, count(*) FROM range(25000000000) GROUP BY k",
      Seq("maxParallelism" -> "100"),
      Seq(64)
    ),
    (
      "minParallelism raises the number",
      "SELECT id * 2 AS k, count(*) FROM range(1000) GROUP BY k",
      Seq("minParallelism" -> "100"),
      Seq(256)
    ),
    (
      "an explicit parallelism is the number",
      "SELECT id * 2 AS k, count(*) FROM range(1000) GROUP BY k",
      Seq("parallelism" -> "150"),
      Seq(150)
    ),
    (
      "a hint sets the number",
      "SELECT /*+ PARALLELISM(64) */ id * 2 AS k, count(*) FROM range(1000) GROUP BY k",
      Nil,
      Seq(64)
    ),
    (
      "equal parts of a plan get one number, so that Spark runs them once",
      """WITH t AS (SELECT id % 100 AS k, count(*) AS n FROM range(1000) GROUP BY 1)
        |SELECT * FROM (SELECT /*+ PARALLELISM(64) */ a.k FROM t a JOIN range(10) r ON a.k = r.id)
        |UNION ALL (SELECT /*+ PARALLELISM(16) */ b.k FROM t b JOIN range(10) r ON b.k = r.id)""".stripMargin,
      Nil,
      Seq(64, 64, 64, 64)
    )
  )

  forAll(cases) { (name, query, settings, expected) =>
    test(name) {
      withSession(active ++ settings: _*)(session => assert(planned(session.sql(query)) == expected))
    }
  }

  test("a sort gets enough shuffle partitions for tasks with little memory") {
    def partitions(fraction: String): Seq[Int] = {
      val settings = active ++ Seq("memory.enabled" -> "true", "memory.fraction" -> fraction)
      withSession(settings: _*)(session => planned(session.sql("SELECT * FROM range(1000000) ORDER BY id % 100")))
    }
    assert(partitions("0.9") == Seq(2))
    assert(partitions("0.001") == Seq(128), "not 256, as the writer would spill")
  }

  test("a table of unknown size gets Spark's number, raised to a power of two") {
    withSession(active: _*) { session =>
      val rows = session.range(1000).toDF().rdd
      val unknown = session.createDataFrame(rows, session.range(1).schema)
      assert(planned(unknown.groupBy("id").count()) == Seq(256))
    }
  }

  test("the bytes of finished stages replace estimates") {
    withSession(active: _*) { session =>
      // 8 MB a side before the filter, next to nothing after it.
      def numbers(side: String): (Seq[Int], Seq[Int]) = {
        val query = session.sql(s"""SELECT a.k, count(*) FROM
                                   |  (SELECT id, id % 7 AS k FROM range(1000000) WHERE id % 1000 = 0) a
                                   |  JOIN ($side) b ON a.id = b.id
                                   |GROUP BY a.k""".stripMargin)
        val before = planned(query)
        query.collect()
        (before, ran(query.queryExecution.executedPlan))
      }
      session.conf.set("spark.apportion.dataVolumePerTask", "256KB")
      val some = "FROM range(1000000) WHERE id % 1000 = 0"
      assert(numbers(s"SELECT DISTINCT id $some") == ((Seq(256, 256, 256), Seq(2, 256, 256))))
      assert(numbers(s"SELECT id $some") == ((Seq(256, 256, 256), Seq(256, 256, 256))), "the join may multiply rows")
    }
  }

  test("a query runs as many shuffles as without Apportion, so that Spark reuses the same exchanges") {
    val query = """WITH t AS (SELECT id % 100 AS k, count(*) AS n FROM range(100000) GROUP BY 1)
                  |SELECT a.k, sum(b.n) FROM t a JOIN t b ON a.k = b.k JOIN range(50) r ON a.n = r.id GROUP BY a.k""".stripMargin
    def shuffles(session: SparkSession): Int = {
      val result = session.sql(query)
      result.collect()
      ran(result.queryExecution.executedPlan).size
    }
    val sparks = withSession(active :+ ("enabled" -> "false"): _*)(shuffles)
    assert(withSession(active: _*)(shuffles) == sparks)
  }

  test("a shuffle that is read with a running shuffle, or equals one, gets the number of that shuffle") {
    withSession(active: _*) { session =>
      val query = """SELECT a.id FROM range(100000000) a JOIN range(500) d ON a.id = d.id UNION ALL
                    |SELECT b.id FROM range(1000) b JOIN range(500) d ON b.id = d.id""".stripMargin
      val initial = initialPlan(session.sql(query))
      assert(numbers(initial) == Seq(32, 32, 32, 32), "the larger of both joins")
      val exchanges = initial.collect { case exchange: ShuffleExchangeExec => exchange }
      val (large, beside) = (exchanges.head, exchanges(1))
      val running = initial.transform {
        case exchange if exchange eq large  => ShuffleQueryStageExec(0, at(large, 4), large.canonicalized)
        case exchange if exchange eq beside => at(beside, 4)
      }
      assert(numbers(SubpartitionCounts(session)(running)) == Seq(4, 4, 4))
    }
  }

  test("a shuffle over a stage has the same key if the stage is reused") {
    withSession(active: _*) { session =>
      val plan = initialPlan(
        session.sql("SELECT n, count(*) FROM (SELECT id % 9, count(*) AS n FROM range(100) GROUP BY 1) GROUP BY n")
      )
      val outer = plan.collectFirst { case exchange: ShuffleExchangeExec => exchange }.get
      val reusing = outer.transform {
        case inner: ShuffleExchangeExec if inner ne outer => ReusedExchangeExec(inner.output, inner)
      }
      val shuffles = new ShuffleKeys
      assert(shuffles.of(reusing) == shuffles.of(outer))
    }
  }

  private val fewKeys = "SELECT a.id FROM range(100000) a JOIN range(100000) b ON a.id = b.id WHERE b.id % 4000 = 1"

  test("Spark's own SHUFFLE_HASH is reverted like its NO_BROADCAST_HASH, but the hint of a query stays") {
    def broadcasts(hint: String, settings: (String, String)*): Boolean = withSession(
      Seq(
        "mode" -> "active",
        "dataVolumePerTask" -> "8KB",
        "spark.sql.autoBroadcastJoinThreshold" -> "64KB",
        "spark.sql.shuffle.partitions" -> "16",
        "spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold" -> "1GB"
      ) ++ settings: _*
    ) { session =>
      val result = session.sql(fewKeys.replaceFirst("SELECT", s"SELECT $hint"))
      result.collect()
      collect(result.queryExecution.executedPlan) { case join: BroadcastHashJoinExec => join }.nonEmpty
    }
    assert(broadcasts("", "enabled" -> "false"))
    assert(broadcasts(""))
    assert(!broadcasts("/*+ SHUFFLE_HASH(b) */", "enabled" -> "false"))
    assert(!broadcasts("/*+ SHUFFLE_HASH(b) */"))
  }

  test("a join that Spark would broadcast is still broadcast if most of the additional shuffle partitions are empty") {
    def broadcasts(settings: (String, String)*): Boolean =
      withSession(Seq("mode" -> "active", "spark.sql.autoBroadcastJoinThreshold" -> "64KB") ++ settings: _*) {
        session =>
          val result = session.sql(fewKeys)
          assert(result.collect().length == 25)
          collect(result.queryExecution.executedPlan) { case join: BroadcastHashJoinExec => join }.nonEmpty
      }
    // 25 keys: some 13 of 16 subpartitions have rows, 22 of 100, 24 of 200.
    for ((sparks, broadcast) <- Seq("16" -> true, "100" -> true, "200" -> false)) {
      assert(broadcasts("enabled" -> "false", "spark.sql.shuffle.partitions" -> sparks) == broadcast)
      assert(broadcasts("dataVolumePerTask" -> "256b", "spark.sql.shuffle.partitions" -> sparks) == broadcast)
    }
    assert(broadcasts(), "few subpartitions are filled")
  }

  test("a record says how the number of shuffle partitions was chosen") {
    val record = decisionOf("SELECT k, count(*) FROM numbers GROUP BY k", active: _*)
    assert(record.sources("subpartitions") == "estimate of 2.4 KiB to 234.4 KiB")
  }

  private def at(exchange: ShuffleExchangeExec, n: Int): ShuffleExchangeExec = exchange.outputPartitioning match {
    case hash: HashPartitioning => exchange.copy(outputPartitioning = hash.copy(numPartitions = n))
    case other                  => fail(s"no hash partitioning: $other")
  }

  /** Of the shuffles that ran, each once, from the top. */
  private def ran(plan: SparkPlan): Seq[Int] =
    collectWithSubqueries(plan) { case stage: ShuffleQueryStageExec => stage }
      .filterNot(_.plan.isInstanceOf[ReusedExchangeExec])
      .map(_.shuffle.outputPartitioning.numPartitions)
}
