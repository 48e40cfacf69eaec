package io.apportion.safety

import java.nio.file.Files

import io.apportion.SparkSuite
import org.apache.spark.sql.{DataFrame, Row, SparkSession}
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanHelper, ShuffleQueryStageExec}
import org.apache.spark.sql.functions._
import org.apache.spark.sql.types.StructType

/**
 * Queries that a wrong number of shuffle partitions harms. Each runs without Apportion and with it, in each mode: with it, results are
 * equal, and no exchange, reused exchange, broadcast join, pruned file or scan is worse.
 */
class SafetySuite extends SparkSuite with AdaptiveSparkPlanHelper {
  override protected def generatesCode: Boolean = true

  private val folder = Files.createTempDirectory("safety").toString
  private val shuffled = "spark.sql.autoBroadcastJoinThreshold" -> "-1"
  // Spark does not coalesce what it caches, so each of its 200 partitions would be a task.
  private val cached = Seq(shuffled, "spark.sql.shuffle.partitions" -> "10")
  private val smallBroadcasts = "spark.sql.autoBroadcastJoinThreshold" -> "256KB"
  private val mebibyte = 1L << 20

  override protected def beforeAll(): Unit = {
    super.beforeAll()
    val session = spark
    session
      .range(200000)
      .selectExpr("id", "id % 1000 AS k", "id % 7 AS small", "uuid() AS word")
      .write
      .parquet(s"$folder/fact")
    session.range(1000).selectExpr("id AS k", "concat('name ', id) AS name").write.parquet(s"$folder/dim")
    session
      .range(0, 50000, 1, 4)
      .selectExpr("id", "id % 500 AS k", "id % 20 AS day")
      .write
      .partitionBy("day")
      .parquet(s"$folder/sales")
    session.range(20).selectExpr("id AS day", "id % 4 AS week").write.parquet(s"$folder/days")
  }

  /** Read once, as each test has three sessions, and Spark runs a job to find the schema of a file. */
  private lazy val schemas =
    Seq("fact", "dim", "sales", "days").map(table => table -> spark.read.parquet(s"$folder/$table").schema)

  override protected def newSession(settings: (String, String)*): SparkSession = {
    val session = super.newSession(settings: _*)
    for ((table, schema) <- schemas)
      session.read.schema(schema).parquet(s"$folder/$table").createOrReplaceTempView(table)
    session
  }

  private def without(settings: Seq[(String, String)])(body: SparkSession => Unit): Unit =
    withSession(settings :+ ("enabled" -> "false"): _*)(body)

  /** Runs a body without Apportion and then in each of its modes. */
  private def each[T](settings: Seq[(String, String)])(body: SparkSession => T)(compare: (T, T) => Unit): Unit = {
    val sparks = withSession(settings :+ ("enabled" -> "false"): _*)(body)
    for (mode <- Seq("active", "reactive"))
      withClue(s"mode=$mode: ")(compare(sparks, withSession(settings :+ ("mode" -> mode): _*)(body)))
  }

  private def rowsOf(query: DataFrame): Seq[Row] = sortedRows(query)

  private def neverWorse(name: String, settings: (String, String)*)(query: SparkSession => DataFrame): Unit =
    test(s"a plan is never worse than under Spark: $name") {
      each(settings) { session =>
        val frame = query(session)
        (rowsOf(frame), PlanFacts.of(frame), frame.queryExecution.executedPlan.treeString)
      } { case ((expected, sparks, before), (rows, ours, after)) =>
        assert(rows == expected)
        assert(ours.worseThan(sparks) == Nil, s"$ours in place of $sparks:\n$after\nin place of\n$before")
      }
    }

  private def neverWorseSql(name: String, settings: (String, String)*)(query: String): Unit =
    neverWorse(name, settings: _*)(_.sql(query.stripMargin))

  // Cached plans

  private def aggregate(session: SparkSession, rows: Long, n: String): DataFrame =
    session.range(rows).selectExpr("id % 100 AS k").groupBy("k").agg(count(lit(1)).as(n))

  private def cachedPartitions(plan: DataFrame): Seq[Int] =
    collectWithSubqueries(plan.queryExecution.executedPlan) { case scan: InMemoryTableScanExec => scan }
      .map(_.relation.cacheBuilder.cachedColumnBuffers.getNumPartitions)

  test("cached data has as many partitions as under Spark, and cached aggregates are joined without a shuffle") {
    each(cached) { session =>
      val (one, other) = (aggregate(session, 100000, "n").cache(), aggregate(session, 1000, "m").cache())
      one.count()
      other.count()
      val joined = one.join(other, "k")
      val facts = (rowsOf(joined), cachedPartitions(joined), PlanFacts.of(joined))
      Seq(one, other).foreach(_.unpersist(blocking = true))
      facts
    } { case ((expected, sparks, plan), (rows, partitions, ours)) =>
      assert(rows == expected)
      assert(partitions == sparks)
      assert(ours.worseThan(plan) == Nil, s"$ours in place of $plan")
    }
  }

  for {
    (name, query) <- Seq[(String, (DataFrame, DataFrame) => DataFrame)](
      "a join" -> (_.join(_, Seq("k"), "full")),
      "an aggregate of a union" -> (_.union(_).groupBy("k").sum("n"))
    )
  } test(s"a query that fills a cached table has as few shuffles as under Spark: $name") {
    each(cached) { session =>
      val filled = aggregate(session, 100000, "n").cache()
      val frame = query(filled, aggregate(session, 1000, "n"))
      val facts = (rowsOf(frame), PlanFacts.of(frame))
      filled.unpersist(blocking = true)
      facts
    } { case ((expected, sparks), (rows, ours)) =>
      assert(rows == expected)
      assert(ours.worseThan(sparks) == Nil, s"$ours in place of $sparks")
    }
  }

  test("a large side of a join with cached data gets at least as many shuffle partitions as under Spark") {
    each(cached) { session =>
      val small = aggregate(session, 1000, "n").cache()
      small.count()
      val joined = session.table("fact").join(small, "k").groupBy("small").agg(sum("n"))
      val rows = rowsOf(joined)
      val numbers = collect(joined.queryExecution.executedPlan) { case stage: ShuffleQueryStageExec =>
        stage.shuffle.outputPartitioning.numPartitions
      }
      small.unpersist(blocking = true)
      (rows, numbers.max)
    } { case ((expected, sparks), (rows, ours)) =>
      assert(rows == expected)
      assert(ours >= sparks)
    }
  }

  // Planning again

  neverWorse("joins become broadcasts at run time below a repartition by the join's key", smallBroadcasts) { session =>
    val small = session.table("dim").where("name LIKE 'name 1_'").selectExpr("k", "repeat(name, 100) AS name")
    session.table("fact").join(small.hint("merge"), "k").select("k", "name").repartition(col("k"))
  }

  neverWorse("a dimension that turns out small is broadcast below a repartition by the join's key", smallBroadcasts) {
    session =>
      val small =
        session.table("fact").where("word LIKE '00%'").groupBy("k").agg(max("word").as("w")).where("w LIKE '001%'")
      session.table("fact").join(small, "k").select("k", "w").repartition(col("k"))
  }

  neverWorse("an aggregate is repartitioned by its key", shuffled)(
    _.table("fact").groupBy("k").agg(max("word").as("word")).repartition(col("k"))
  )

  neverWorse("a repartition by key lies below an aggregate of the same key", shuffled)(
    _.table("fact").groupBy("k").count().repartition(col("k")).groupBy("k").agg(sum("count"))
  )

  neverWorseSql("a join of two aggregates is planned again with what its stages wrote", smallBroadcasts)(
    """SELECT a.k, n, m FROM (SELECT k, count(*) AS n FROM fact WHERE word LIKE '0%' GROUP BY k) a
      |JOIN (SELECT id % 1000 AS k, count(*) AS m FROM fact GROUP BY 1) b ON a.k = b.k"""
  )

  neverWorseSql("an empty side removes the join", shuffled)(
    "SELECT f.k, d.name FROM fact f JOIN (SELECT * FROM dim WHERE name = 'none') d ON f.k = d.k"
  )

  neverWorseSql("an aggregate over a union of aggregates by the same key", shuffled)(
    """SELECT k, sum(n) FROM (
      |  SELECT k, count(*) AS n FROM fact GROUP BY k UNION ALL
      |  SELECT k, count(*) AS n FROM (SELECT k, name, count(*) FROM dim GROUP BY k, name) GROUP BY k)
      |GROUP BY k"""
  )

  neverWorseSql("a small dimension of a star join becomes a broadcast behind an aggregate", smallBroadcasts)(
    """SELECT d.name, n FROM (SELECT k, count(*) AS n FROM fact GROUP BY k) f
      |JOIN (SELECT k, max(name) AS name FROM dim GROUP BY k HAVING max(name) LIKE 'name 9__') d ON f.k = d.k"""
  )

  // Exchanges that several plans of a query have

  neverWorseSql("an aggregate in the query and in a scalar subquery", shuffled)(
    """WITH t AS (SELECT k, count(*) AS n FROM fact GROUP BY k)
      |SELECT t.k, n, name FROM t JOIN dim ON t.k = dim.k WHERE n >= (SELECT avg(n) FROM t)"""
  )

  neverWorse("an aggregate below a dropped repartition and in a scalar subquery", shuffled)(
    _.sql("""WITH t AS (SELECT k, count(*) AS n FROM fact GROUP BY k)
            |SELECT k, n FROM t WHERE n >= (SELECT avg(n) FROM t)""".stripMargin).repartition(col("k"))
  )

  neverWorse("two aggregates below a repartition with a number and in a scalar subquery", shuffled)(
    _.sql(
      """WITH t AS (SELECT k, max(n) AS n FROM (SELECT k, small, count(*) AS n FROM fact GROUP BY k, small) GROUP BY k)
            |SELECT k, n FROM t WHERE n > (SELECT avg(n) FROM t)""".stripMargin
    ).repartition(16, col("k"))
  )

  neverWorseSql("an aggregate below a union by its key and in a scalar subquery", shuffled)(
    """WITH t AS (SELECT k, count(*) AS n FROM fact GROUP BY k)
      |SELECT k, sum(n) FROM (SELECT k, n FROM t UNION ALL SELECT k, count(*) FROM dim GROUP BY k)
      |WHERE n <= (SELECT max(n) FROM t) GROUP BY k"""
  )

  neverWorseSql("an aggregate in two scalar subqueries", shuffled)(
    """WITH t AS (SELECT k, count(*) AS n FROM fact GROUP BY k)
      |SELECT * FROM dim WHERE k < (SELECT avg(n) FROM t) AND k > (SELECT min(k) FROM t WHERE n > 10)"""
  )

  neverWorseSql("an aggregate in the query and below a filter by IN", shuffled)(
    """WITH t AS (SELECT k, count(*) AS n FROM fact GROUP BY k)
      |SELECT a.k FROM t a JOIN dim ON a.k = dim.k WHERE a.n IN (SELECT n FROM t WHERE k < 10)"""
  )

  neverWorseSql("a join of a common table expression with itself", shuffled)(
    """WITH t AS (SELECT k, count(*) AS n FROM fact GROUP BY k)
      |SELECT a.k, sum(b.n) FROM t a JOIN t b ON a.k = b.k JOIN dim ON a.n = dim.k GROUP BY a.k"""
  )

  neverWorseSql("a common table expression in branches of different sizes", shuffled)(
    """WITH t AS (SELECT small, count(*) AS n FROM fact GROUP BY small)
      |SELECT t.small FROM t JOIN fact ON t.small = fact.small WHERE fact.id < 100
      |UNION ALL SELECT t.small FROM t JOIN dim ON t.small = dim.k"""
  )

  neverWorseSql("dynamic pruning by a broadcast dimension")(
    "SELECT week, count(*) FROM sales JOIN days ON sales.day = days.day WHERE week = 1 GROUP BY week"
  )

  neverWorseSql("dynamic pruning by a dimension with two levels of shuffles")(
    """SELECT count(*), max(n) FROM sales JOIN (
      |  SELECT day, sum(n) AS n FROM (SELECT week, day, count(*) AS n FROM days WHERE week = 2 GROUP BY week, day)
      |  GROUP BY day) d ON sales.day = d.day"""
  )

  neverWorseSql("dynamic pruning by an aggregate that the query also reads")(
    """WITH d AS (SELECT day, max(week) AS week FROM days WHERE week < 2 GROUP BY day)
      |SELECT s.day, count(*) FROM sales s JOIN d ON s.day = d.day WHERE d.week <= (SELECT max(week) FROM d) GROUP BY s.day"""
  )

  // Partitions that the query or a table gives

  neverWorse("a repartition with a number", shuffled) { session =>
    session.table("fact").repartition(37, col("k")).groupBy("k").count()
  }

  neverWorseSql("a global sort", shuffled)("SELECT k, word FROM fact WHERE id % 100 = 0 ORDER BY word, k")

  neverWorseSql("a rollup", shuffled)("SELECT k % 10, small, count(*) FROM fact GROUP BY ROLLUP (k % 10, small)")

  neverWorseSql("a full outer join and a window", shuffled)(
    """SELECT k, name, rank() OVER (PARTITION BY k ORDER BY n) FROM
      |(SELECT k, small, count(*) AS n FROM fact GROUP BY k, small) FULL OUTER JOIN dim USING (k)"""
  )

  neverWorseSql("an anti join and a semi join", smallBroadcasts)(
    "SELECT k FROM dim WHERE k NOT IN (SELECT small FROM fact WHERE id < 9000) AND EXISTS (SELECT 1 FROM fact WHERE fact.k = dim.k)"
  )

  test("tables with buckets are joined without a shuffle") {
    each(Seq(shuffled)) { session =>
      session.sql("DROP TABLE IF EXISTS bucketed")
      session.table("fact").where("id < 20000").write.bucketBy(8, "k").saveAsTable("bucketed")
      val joined = session.sql(
        "SELECT a.k, count(*) FROM bucketed a JOIN (SELECT DISTINCT k FROM bucketed) b ON a.k = b.k GROUP BY a.k"
      )
      val facts = (rowsOf(joined), PlanFacts.of(joined))
      session.sql("DROP TABLE bucketed")
      facts
    } { case ((expected, sparks), (rows, ours)) =>
      assert(rows == expected)
      assert(ours.worseThan(sparks) == Nil)
    }
  }

  // Tasks and what they read

  private val smallTasks = Seq(shuffled, "spark.sql.adaptive.advisoryPartitionSizeInBytes" -> "1MB")

  /** No task reads more than twice what the largest one reads under Spark, or the target size. */
  private def boundedTasks(name: String, settings: (String, String)*)(query: SparkSession => DataFrame): Unit =
    test(s"$name: no task reads more than twice as much as under Spark") {
      each(smallTasks ++ settings) { session =>
        ShuffleTasks.during(session)(query(session).write.format("noop").mode("overwrite").save())
      } { (sparks, ours) =>
        assert(ours.largestBytes <= 2 * sparks.largestBytes.max(mebibyte), s"$ours in place of $sparks")
      }
    }

  private val settingsOfUsers =
    Seq("with default settings" -> Nil, "with 400 shuffle partitions" -> Seq("spark.sql.shuffle.partitions" -> "400"))

  for ((setting, settings) <- settingsOfUsers) {
    boundedTasks(s"a join that multiplies rows 200 times, $setting", settings: _*) { session =>
      val side = session.range(2000).selectExpr("id % 10 AS k", "id")
      side
        .as("a")
        .join(side.as("b"), "k")
        .selectExpr("a.id * 2000 + b.id AS pair", "uuid() AS word")
        .repartition(col("pair"))
    }

    for ((kind, join) <- Seq("broadcast" -> "10MB", "shuffled" -> "-1"))
      boundedTasks(
        s"a $kind join that makes narrow rows wide, $setting",
        settings :+ ("spark.sql.autoBroadcastJoinThreshold" -> join): _*
      ) { session =>
        val words = session
          .range(100)
          .selectExpr(
            "id AS k",
            "concat_ws('', transform(sequence(1, 30), i -> sha2(string(id * 100 + i), 256))) AS word"
          )
        val wide = words.groupBy("k").agg(max("word").as("word"))
        session.range(0, 20000, 1, 4).selectExpr("id", "id % 100 AS k").join(wide, "k").repartition(col("id"))
      }

    boundedTasks(s"a generator that multiplies rows, $setting", settings: _*)(
      _.sql(
        "SELECT g, collect_list(word) FROM (SELECT explode(sequence(k, k + 100)) AS g, uuid() AS word FROM dim) GROUP BY g"
      )
    )

    boundedTasks(s"a user's function that multiplies rows, $setting", settings: _*) { session =>
      import session.implicits._
      session
        .range(0, 2000, 1, 4)
        .as[Long]
        .flatMap(id => Seq.tabulate(200)(i => (id * 200 + i, s"$id $i ${id * i}")))
        .toDF("k", "word")
        .repartition(col("k"))
    }

    boundedTasks(s"a user's function that makes long values, $setting", settings: _*) { session =>
      val long = udf((id: Long) => Seq.tabulate(200)(i => (id * i * 7919).toHexString).mkString)
      session.range(0, 20000, 1, 4).select(col("id"), long(col("id")).as("text")).repartition(col("id"))
    }

    boundedTasks(s"files that expand 30 times in the shuffle, $setting", settings: _*) { session =>
      val (path, schema) = expanding
      session.read.schema(schema).parquet(path).selectExpr("xxhash64(k) AS k", "word").repartition(col("k"))
    }
  }

  /** Files that Spark has written, and their schema. */
  private lazy val expanding: (String, StructType) = {
    val path = s"$folder/expanding"
    without(Nil) { session =>
      session
        .range(0, 400000, 1, 2)
        .selectExpr("id DIV 50 AS k", "sha2(string(id DIV 400), 256) AS word")
        .write
        .option("compression", "zstd")
        .parquet(path)
    }
    path -> spark.read.parquet(path).schema
  }

  test("four groups from 400 map tasks are read by about as many tasks as under Spark") {
    each(Seq(shuffled)) { session =>
      ShuffleTasks.during(session) {
        session.range(0, 400000, 1, 400).selectExpr("id % 4 AS g").groupBy("g").count().collect()
      }
    }((sparks, ours) => assert(ours.tasks <= sparks.tasks + 4, s"$ours in place of $sparks"))
  }

  test("outdated catalog statistics do not lower the number of shuffle partitions") {
    without(Nil) { session =>
      session.sql("DROP TABLE IF EXISTS grown")
      session.sql("CREATE TABLE grown USING parquet PARTITIONED BY (day) AS SELECT id, day FROM sales WHERE id < 10")
      session.sql("ANALYZE TABLE grown COMPUTE STATISTICS")
      session.sql("INSERT INTO grown SELECT id + 100, day FROM sales")
    }
    withSession("spark.sql.statistics.size.autoUpdate.enabled" -> "false", shuffled) { session =>
      val query = session.sql("SELECT id, count(*) FROM grown GROUP BY id")
      query.collect()
      val numbers = collect(query.queryExecution.executedPlan) { case stage: ShuffleQueryStageExec =>
        stage.shuffle.outputPartitioning.numPartitions
      }
      session.sql("DROP TABLE grown")
      assert(numbers.forall(_ >= 200))
    }
  }

  test("spark.sql.shuffle.partitions is never lowered, and is rounded up to a power of two") {
    for ((set, expected) <- Seq("8" -> 8, "1500" -> 2048, "3000" -> 4096))
      withSession(shuffled, "spark.sql.shuffle.partitions" -> set) { session =>
        val query = session.sql("SELECT x, count(*) FROM (SELECT explode(sequence(0, id)) AS x FROM few) GROUP BY x")
        query.collect()
        val numbers = collect(query.queryExecution.executedPlan) { case stage: ShuffleQueryStageExec =>
          stage.shuffle.outputPartitioning.numPartitions
        }
        assert(numbers == Seq(expected))
      }
  }
}
