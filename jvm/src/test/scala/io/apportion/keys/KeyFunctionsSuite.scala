package io.apportion.keys

import io.apportion.SparkSuite
import io.apportion.decision.ranges.Ranges
import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanHelper
import org.apache.spark.sql.execution.exchange.ShuffleExchangeLike
import org.apache.spark.sql.functions.{expr, spark_partition_id}

/** The functions in queries: against the partitions that Spark really makes, their help, and what they refuse. */
class KeyFunctionsSuite extends SparkSuite with AdaptiveSparkPlanHelper {

  private val functions = KeyFunctionRegistry.descriptions.map { case (_, help, _) => help }

  private def valueOf(expression: String): Any = spark.sql(s"SELECT $expression").head().get(0)

  // What Spark does

  for {
    (p, n) <- Seq(1, 2, 3, 5, 7, 10, 16, 31, 100, 128).flatMap(p => Seq(p -> p, p -> (3 * p + 1)))
  } test(s"a repartition by even_key(k, $p, $n) puts keys into the range of task k mod p") {
    val keys = spark.range(-p.toLong, 2L * p).withColumnRenamed("id", "k").repartition(n, expr(s"even_key(k, $p, $n)"))
    val ranges = Ranges.even(n, p)
    keys.withColumn("subpartition", spark_partition_id()).collect().foreach { row =>
      val task = Math.floorMod(row.getLong(0), p)
      assert(ranges.starts(task) <= row.getInt(1) && row.getInt(1) < ranges.ends(task), row)
    }
  }

  test("a multiple of p keys fills p tasks evenly") {
    val rows = spark
      .range(30)
      .repartition(10, expr("even_key(id, 10)"))
      .groupBy(spark_partition_id())
      .count()
      .collect()
    assert(rows.map(_.getLong(1)).toSeq == Seq.fill(10)(3L))
  }

  test("adaptive execution reads keys in the tasks that even_key assigns, also from more shuffle partitions") {
    withSession("adaptiveWrites" -> "false", "parallelism" -> "8", "spark.sql.shuffle.partitions" -> "32") { session =>
      val tasks = session.sql("""
        SELECT task, spark_partition_id() AS read_by FROM (
          SELECT even_key(id, 8, 32) AS surrogate, first(id % 8) AS task FROM range(0, 80, 1, 2) GROUP BY 1
        )""")
      val found = tasks.collect()
      assert(found.length == 80)
      assert(found.forall(row => row.getLong(0) == row.getInt(1)))
    }
  }

  test("grouping by the surrogate and the key needs no second shuffle") {
    val grouped = spark.sql("""
      SELECT id % 10, count(*)
      FROM (SELECT /*+ REPARTITION(5, surrogate) */ * FROM (SELECT id, even_key(id % 10, 5) AS surrogate FROM range(100)))
      GROUP BY surrogate, id % 10
      """)
    assert(grouped.collect().map(_.getLong(1)).toSeq == Seq.fill(10)(10L))
    assert(collect(grouped.queryExecution.executedPlan) { case exchange: ShuffleExchangeLike => exchange }.size == 1)
  }

  private val keys: Seq[String] = Seq(
    "id",
    "CAST(id AS INT)",
    "CAST(id AS SMALLINT)",
    "id % 3 = 0",
    "string(id)",
    "nullif(id % 5, 3)",
    "CAST(id AS DOUBLE) / 7, CAST(-0.0 AS FLOAT)",
    "CAST(id AS DECIMAL(10, 2)), CAST(id AS DECIMAL(38, 2))",
    "date_add(DATE'2026-01-01', CAST(id AS INT)), timestamp_seconds(id)",
    "unhex(hex(id))",
    "named_struct('a', id, 'b', string(id), 'c', nullif(id, 7))",
    "array(id, NULL, 3)",
    "id, string(id), NULL",
    "CAST(if(id % 2 = 0, 'a', 'A') || id AS STRING) COLLATE UTF8_LCASE",
    "string(id) COLLATE UNICODE_CI"
  )

  for (columns <- keys)
    test(s"subpartition_of and task_of predict where rows go by $columns") {
      if (columns.contains("COLLATE")) since("4.0")
      val (p, n) = (5, 12)
      val named = spark.sql(s"SELECT struct(${columns}) AS columns FROM range(200)").select("columns.*")
      val names = named.columns.map(name => s"`$name`").mkString(", ")
      val found = named
        .repartition(n, named.columns.map(name => named(s"`$name`")).toSeq: _*)
        .withColumn("there", spark_partition_id())
        .withColumn("subpartition", expr(s"subpartition_of($n, $names)"))
        .withColumn("task", expr(s"task_of($p, $n, $names)"))
      assert(found.where("subpartition <> there").isEmpty)
      val ranges = Ranges.even(n, p)
      found.select("there", "task").distinct().collect().foreach { row =>
        val (subpartition, task) = (row.getInt(0), row.getInt(1))
        assert(ranges.starts(task) <= subpartition && subpartition < ranges.ends(task))
      }
    }

  // How they are computed

  private val calls = Seq(
    "even_key(id, 7, 20)",
    "even_key(CAST(id AS TINYINT), 7)",
    "task_of(7, 20, id, string(id))",
    "flink_key_group(id, 128)",
    "flink_key_group(string(id), 128)",
    "flink_operator_index(CAST(id AS INT), 5)",
    "flink_key_group_range(id, 100)",
    "even_key(nullif(id % 3, 1), 7)"
  )

  for (call <- calls)
    test(s"$call has the same value interpreted and in generated code") {
      def rows(mode: String, wholeStage: Boolean): Seq[Any] =
        withSession("spark.sql.codegen.factoryMode" -> mode, "spark.sql.codegen.wholeStage" -> wholeStage.toString) {
          _.sql(s"SELECT $call FROM range(0, 100, 1, 1)").collect().toSeq
        }
      assert(rows("CODEGEN_ONLY", wholeStage = true) == rows("NO_CODEGEN", wholeStage = false))
    }

  test("a query can group by a call, and constant arguments can be calls") {
    val groups = spark.sql("SELECT even_key(id % 3, 5), count(*) FROM range(30) GROUP BY even_key(id % 3, 5)")
    assert(groups.collect().map(_.getLong(1)).toSeq == Seq(10, 10, 10))
    assert(valueOf("flink_key_group('a', flink_max_parallelism(2 + 3))") == valueOf("flink_key_group('a', 128)"))
  }

  test("a column is named by the text of its call") {
    assert(
      spark.sql("SELECT even_key(id, 5), task_of(2, 4, id) FROM range(1)").columns.toSeq ==
        Seq("even_key(id, 5)", "task_of(2, 4, id)")
    )
  }

  // What they refuse

  private val whole = "TINYINT, SMALLINT, INT or BIGINT"

  private val wrong = Seq(
    "even_key(id, 0)" -> "p must be a constant whole number from 1 to 1048576, but is 0",
    "even_key(id, -5)" -> "p must be a constant whole number from 1 to 1048576, but is -5",
    "even_key(id, 3000000000)" -> "p must be a constant whole number from 1 to 1048576, but is 3000000000",
    "even_key(id, 5, 4)" -> "n must be a constant whole number from 5 to 2147483647, but is 4",
    "even_key(id, id)" -> "p must be a constant whole number from 1 to 1048576, but is id",
    "even_key(id, 2.5)" -> "p must be a constant whole number from 1 to 1048576, but is 2.5",
    "even_key(id, '5')" -> "p must be a constant whole number from 1 to 1048576, but is 5",
    "even_key(id, 5, CAST(rand() AS INT))" ->
      "n must be a constant whole number from 5 to 2147483647, but is CAST(rand() AS INT)",
    "even_key(string(id), 5)" -> s"k must be $whole, but id is STRING",
    "even_key(1.5, 5)" -> s"k must be $whole, but 1.5 is DECIMAL(2,1)",
    "even_key(id)" -> "even_key takes the arguments (k, p[, n]), but is called with 1 argument",
    "even_key(id, 5, 10, 20)" -> "even_key takes the arguments (k, p[, n]), but is called with 4 arguments",
    "subpartition_of(0, id)" -> "n must be a constant whole number from 1 to 2147483647, but is 0",
    "subpartition_of(5)" -> "subpartition_of takes the arguments (n, column, ...), but is called with 1 argument",
    "subpartition_of(5, map(1, id))" -> "cannot contain elements of the \"MAP\" type",
    "task_of(5, 4, id)" -> "n must be a constant whole number from 5 to 2147483647, but is 4",
    "task_of(5, 4)" -> "task_of takes the arguments (p, n, column, ...), but is called with 2 arguments",
    "flink_max_parallelism(32769)" -> "parallelism must be a constant whole number from 1 to 32768, but is 32769",
    "flink_key_group(1.5D, 128)" -> s"key must be STRING, $whole, but 1.5 is DOUBLE",
    "flink_key_group(id, 0)" -> "max_parallelism must be a constant whole number from 1 to 32768, but is 0",
    "flink_key_group_range(id, 5, 4)" -> "max_parallelism must be a constant whole number from 5 to 32768, but is 4",
    "flink_rebalance_keys(5, 4)" -> "max_parallelism must be a constant whole number from 5 to 32768, but is 4"
  )

  for ((call, message) <- wrong)
    test(s"a wrong call is refused: $call") {
      val error = intercept[AnalysisException](spark.sql(s"SELECT $call FROM range(1)"))
      assert(error.getMessage.contains(message))
      assert(error.getMessage.contains(s"""Cannot resolve "${call.takeWhile(_ != '(')}("""))
      assert(error.getMessage.contains("line 1 pos 7"))
    }

  for (
    call <- Seq(
      "even_key(NULL, 5)",
      "even_key(CAST(NULL AS INT), 5)",
      "even_key(id, NULL)",
      "even_key(id, 5, CAST(NULL AS INT))",
      "subpartition_of(NULL, id)",
      "task_of(5, NULL, id)",
      "flink_key_group(CAST(NULL AS STRING), 128)",
      "flink_key_group_range(NULL, 5)"
    )
  ) test(s"$call is null") {
    assert(spark.sql(s"SELECT $call FROM range(3)").collect().forall(_.isNullAt(0)))
  }

  // What they say of themselves

  for (help <- functions)
    test(s"DESCRIBE FUNCTION ${help.getName} shows its usage, arguments and examples") {
      val lines = spark.sql(s"DESCRIBE FUNCTION EXTENDED ${help.getName}").collect().map(_.getString(0)).mkString("\n")
      for (part <- Seq(s"Usage: ${help.getName}(", "Arguments:", "Examples:", "Since: 0.1.0"))
        assert(lines.contains(part))
    }

  private val example = """> SELECT (.*);\n +(.*)\n""".r

  for (help <- functions; found <- example.findAllMatchIn(help.getExamples))
    test(s"an example in the help is correct: ${found.group(1)}") {
      val shown = spark.sql(s"SELECT CAST(to_json(struct(${found.group(1)} AS value)) AS STRING)").head().getString(0)
      assert(shown == s"""{"value":${found.group(2)}}""")
    }
}
