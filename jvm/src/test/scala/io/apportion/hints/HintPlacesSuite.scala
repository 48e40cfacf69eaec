package io.apportion.hints

import io.apportion.report.DecisionLog
import org.apache.spark.sql.{DataFrame, SparkSession}
import org.apache.spark.sql.connector.catalog.InMemoryRowLevelOperationTableCatalog
import org.apache.spark.sql.functions.{col, count, lit}

/** Hints wherever a query can come from: DataFrames, views, caches, writes, parameters; and what AQE makes of it at run time. */
class HintPlacesSuite extends HintSuite {
  private val settings = Seq("parallelism" -> "3", "spark.sql.autoBroadcastJoinThreshold" -> "-1")

  private def stages(session: SparkSession, query: DataFrame): Seq[String] = stages(decisionsOf(session, query))

  private def inSession(body: SparkSession => Unit): Unit = withSession(settings: _*)(body)

  /** Spark does not coalesce what it caches, so each of its 200 partitions would be a task. */
  private def inSessionWithCache(body: SparkSession => Unit): Unit =
    withSession(settings :+ ("spark.sql.shuffle.partitions" -> "20"): _*)(body)

  private def counts(session: SparkSession): DataFrame =
    session.table("numbers").groupBy("k").agg(count("*").as("c"))

  test("a hint on a DataFrame reaches its block") {
    inSession { session =>
      assert(stages(session, counts(session).hint("parallelism", 8)) == Seq("HashAggregate: 8"))
    }
  }

  test("operators after a hint on a DataFrame are another block, except sorts and limits") {
    inSession { session =>
      val hinted = counts(session).hint("parallelism", 8)
      assert(stages(session, hinted.orderBy("k")) == Seq("HashAggregate: 8", "Sort: 8"))
      assert(stages(session, hinted.groupBy("c").count()) == Seq("HashAggregate: 3", "HashAggregate: 8"))
      assert(
        stages(session, hinted.filter("k > 10").groupBy("c").count()) == Seq("HashAggregate: 3", "HashAggregate: 8")
      )
      val ofSql = session.sql(
        "SELECT /*+ PARALLELISM(8) */ k, count(*) AS c FROM numbers GROUP BY GROUPING SETS ((k), ())"
      )
      assert(stages(session, ofSql.groupBy("c").count()) == Seq("HashAggregate: 3", "HashAggregate: 8"))
    }
  }

  test("a hint on a DataFrame does not reach other DataFrames of the same source") {
    inSession { session =>
      val plain = counts(session)
      val hinted = plain.hint("parallelism", 8)
      assert(stages(session, hinted) == Seq("HashAggregate: 8"))
      assert(stages(session, plain) == Seq("HashAggregate: 3"))
      assert(stages(session, plain.hint("parallelism", 16)) == Seq("HashAggregate: 16"))
      assert(stages(session, hinted.select("c")) == Seq("HashAggregate: 8"))
    }
  }

  test("one DataFrame can be hinted twice and joined with itself") {
    inSession { session =>
      val plain = counts(session)
      val (a, b) = (plain.hint("parallelism", 8).as("a"), plain.hint("parallelism", 16).as("b"))
      val joined = a.join(b, col("a.c") === col("b.c"))
      assert(stages(session, joined) == Seq("HashAggregate: 16", "HashAggregate: 8", "ShuffledHashJoin: 3"))
    }
  }

  test("one DataFrame can be hinted twice and combined in a union") {
    inSession { session =>
      val plain = counts(session)
      val union = plain.hint("parallelism", 8).union(plain.hint("parallelism", 16))
      assert(stages(session, union) == Seq("HashAggregate: 16", "HashAggregate: 8"))
    }
  }

  test("the last hint on a DataFrame wins for its whole block") {
    inSession { session =>
      val hinted = counts(session).hint("parallelism", 8).hint("parallelism", 16)
      assert(stages(session, hinted) == Seq("HashAggregate: 16"))
      assert(
        stages(session, counts(session).hint("parallelism", 8).orderBy("k").hint("parallelism", 16)) ==
          Seq("HashAggregate: 16", "Sort: 16")
      )
    }
  }

  test("a hint on a DataFrame reaches dropDuplicates") {
    inSession { session =>
      val hinted = session.table("numbers").dropDuplicates("k").hint("parallelism", 8)
      assert(stages(session, hinted.filter("id > 5").select(col("id") + lit(1))) == Seq("HashAggregate: 8"))
    }
  }

  test("a hint in a view wins over a hint on a query of the view") {
    inSession { session =>
      session.sql(
        "CREATE TEMP VIEW hinted AS SELECT /*+ PARALLELISM(8) */ k, count(*) AS c FROM numbers GROUP BY k"
      )
      session.sql("CREATE TEMP VIEW plain AS SELECT k, count(*) AS c FROM numbers GROUP BY k")
      val over = "SELECT /*+ PARALLELISM(16) */ c, count(*) FROM %s GROUP BY c"
      assert(stages(session, session.sql("SELECT * FROM hinted")) == Seq("HashAggregate: 8"))
      assert(stages(session, session.sql(over.format("hinted"))) == Seq("HashAggregate: 16", "HashAggregate: 8"))
      assert(stages(session, session.sql(over.format("plain"))) == Seq("HashAggregate: 16", "HashAggregate: 16"))
      assert(stages(session, session.sql("SELECT * FROM plain")) == Seq("HashAggregate: 3"))
      assert(
        stages(session, session.sql("SELECT a.k FROM hinted a JOIN hinted b ON a.c = b.c")) ==
          Seq("HashAggregate: 8", "HashAggregate: 8", "ShuffledHashJoin: 3")
      )
    }
  }

  test("a hint in a stored view does not reach other queries of its table") {
    inSession { session =>
      session.sql("CREATE TABLE stored USING parquet AS SELECT id, k FROM numbers")
      session.sql("CREATE VIEW stored_hinted AS SELECT /*+ PARALLELISM(8) */ k, count(*) AS c FROM stored GROUP BY k")
      try {
        assert(
          stages(session, session.sql("SELECT k FROM stored_hinted ORDER BY k")) == Seq("HashAggregate: 8", "Sort: 3")
        )
        assert(
          stages(session, session.sql("SELECT /*+ PARALLELISM(16) */ k, count(*) FROM stored GROUP BY k")) ==
            Seq("HashAggregate: 16")
        )
        // The catalog gives every query the same relation.
        assert(stages(session, session.sql("SELECT k, count(*) FROM stored GROUP BY k")) == Seq("HashAggregate: 3"))
      } finally {
        session.sql("DROP VIEW stored_hinted")
        session.sql("DROP TABLE stored")
      }
    }
  }

  test("hints reach the queries of INSERT, CREATE TABLE AS SELECT and saveAsTable") {
    inSession { session =>
      val query = "SELECT /*+ PARALLELISM(8) */ k, count(*) AS c FROM numbers GROUP BY k"
      def written(write: => Unit) = {
        val before = DecisionLog.of(session).all.size
        write
        stages(DecisionLog.of(session).all.drop(before))
      }
      try {
        assert(written(session.sql(s"CREATE TABLE filled USING parquet AS $query")) == Seq("HashAggregate: 8"))
        assert(written(session.sql(s"INSERT INTO filled $query")) == Seq("HashAggregate: 8"))
        assert(
          written(session.sql(s"INSERT OVERWRITE filled WITH c AS ($query) SELECT * FROM c")) == Seq("HashAggregate: 8")
        )
        assert(written(session.sql(query).write.mode("overwrite").saveAsTable("filled")) == Seq("HashAggregate: 8"))
        assert(session.table("filled").count() == 1000)
      } finally session.sql("DROP TABLE IF EXISTS filled")
    }
  }

  test("hints reach the source of a MERGE") {
    withSession(
      settings :+ ("spark.sql.catalog.testing" -> classOf[InMemoryRowLevelOperationTableCatalog].getName): _*
    ) { session =>
      session.sql("CREATE TABLE testing.merged (k BIGINT, c BIGINT)")
      session.sql("INSERT INTO testing.merged SELECT id, 0 FROM few")
      val before = DecisionLog.of(session).all.size
      session.sql(
        """MERGE INTO testing.merged t
            |USING (SELECT /*+ PARALLELISM(8) */ k % 7 AS k, max(c) AS c FROM (
            |  SELECT /*+ PARALLELISM(16) */ k, count(*) AS c FROM numbers GROUP BY k) GROUP BY k % 7) s ON t.k = s.k
            |WHEN MATCHED THEN UPDATE SET t.c = s.c WHEN NOT MATCHED THEN INSERT *""".stripMargin
      )
      val merged = stages(DecisionLog.of(session).all.drop(before))
      assert(merged.contains("HashAggregate: 16") && merged.exists(_.endsWith("Join: 8")))
      assert(session.sql("SELECT count(*), sum(c) FROM testing.merged").head().toString == "[30,140]")
    }
  }

  test("hints work with parameters and EXECUTE IMMEDIATE") {
    inSession { session =>
      val hinted = session.sql(
        "SELECT /*+ PARALLELISM(8) */ k, count(*) FROM numbers WHERE id > :from GROUP BY k",
        Map("from" -> 100)
      )
      assert(stages(session, hinted) == Seq("HashAggregate: 8"))
      val number = session.sql("SELECT /*+ PARALLELISM(:n) */ k, count(*) FROM numbers GROUP BY k", Map("n" -> 8))
      assert(stages(session, number) == Seq("HashAggregate: 8"))
      since("4.0")
      val immediate =
        session.sql("EXECUTE IMMEDIATE 'SELECT /*+ PARALLELISM(8) */ k, count(*) FROM numbers GROUP BY k'")
      assert(stages(session, immediate) == Seq("HashAggregate: 8"))
    }
  }

  test("a cached query keeps its own hints, and queries with other hints use it") {
    inSessionWithCache { session =>
      val joined = "SELECT a.k, b.k AS l FROM numbers a JOIN few b ON a.k = b.id"
      val cached =
        session.sql(s"SELECT /*+ PARALLELISM(8) */ l % 7 AS m, count(*) AS c FROM ($joined) GROUP BY l % 7").cache()
      try {
        val before = DecisionLog.of(session).all.size
        val over = cached.groupBy("c").count().hint("parallelism", 16)
        over.collect()
        val decisions = DecisionLog.of(session).all.drop(before)
        // The last stage of a cached plan is Spark's.
        assert(stages(decisions) == Seq("HashAggregate: 16", "ShuffledHashJoin: 8"))
        assert(over.queryExecution.withCachedData.toString.contains("InMemoryRelation"))
      } finally cached.unpersist()
    }
  }

  test("a query with a hint uses the cached result of a view with common table expressions") {
    inSessionWithCache { session =>
      session
        .sql("WITH c AS (SELECT k, count(*) AS n FROM numbers GROUP BY k) SELECT a.n FROM c a JOIN c b ON a.n = b.k")
        .createTempView("kept")
      session.catalog.cacheTable("kept")
      try {
        val over = session.sql("SELECT /*+ PARALLELISM(8) */ n % 7, count(*) FROM kept GROUP BY n % 7")
        assert(over.queryExecution.withCachedData.toString.contains("InMemoryRelation"))
        assert(stages(session, over).contains("HashAggregate: 8"))
      } finally session.catalog.uncacheTable("kept")
    }
  }

  test("hints reach common table expressions of a cached table") {
    inSession { session =>
      session.catalog.cacheTable("numbers")
      try {
        val query = session.sql(
          """WITH c AS (SELECT k, count(*) AS n FROM numbers GROUP BY k)
            |SELECT * FROM (SELECT /*+ PARALLELISM(8) */ max(k) AS m, n FROM c GROUP BY n) a
            |JOIN (SELECT /*+ PARALLELISM(16) */ k + n AS s FROM c WHERE k > 5) b ON a.m = b.s""".stripMargin
        )
        assert(query.queryExecution.withCachedData.toString.contains("InMemoryRelation"))
        assert(
          stages(session, query) == Seq(
            "HashAggregate: 16",
            "HashAggregate: 8",
            "HashAggregate: 8",
            "ShuffledHashJoin: 3"
          )
        )
      } finally session.catalog.uncacheTable("numbers")
    }
  }

  test("a join that becomes a broadcast join at run time keeps its block") {
    withSession("parallelism" -> "3", "spark.sql.autoBroadcastJoinThreshold" -> "20KB") { session =>
      val query = session.sql(
        """SELECT /*+ PARALLELISM(16) */ a.id, b.m FROM numbers a LEFT JOIN (
          |  SELECT /*+ PARALLELISM(8) */ k, max(id) AS m FROM numbers GROUP BY k HAVING max(id) % 997 = 3) b ON a.id = b.m""".stripMargin
      )
      val decisions = decisionsOf(session, query)
      assert(query.queryExecution.executedPlan.toString.contains("BroadcastHashJoin"))
      assert(decisions.filter(_.operator == "HashAggregate").map(_.tasks) == Seq(8))
      assert(decisions.filter(_.operator == "BroadcastHashJoin").map(_.tasks) == Seq(16))
    }
  }

  test("each of two blocks that use an exchange reads it with its own number of tasks") {
    inSession { session =>
      val query = session.sql(
        """SELECT a.k, a.c, b.s FROM (SELECT /*+ PARALLELISM(8) */ k, count(*) AS c FROM numbers GROUP BY k) a
          |JOIN (SELECT /*+ PARALLELISM(16) */ k, count(*) AS s FROM numbers GROUP BY k) b ON a.c = b.s""".stripMargin
      )
      assert(stages(session, query) == Seq("HashAggregate: 16", "HashAggregate: 8", "ShuffledHashJoin: 3"))
      assert(query.queryExecution.executedPlan.toString.contains("ReusedExchange"))
    }
  }

  test("RANGES(balanced) makes balanced ranges for its block") {
    inSession { session =>
      // A fifth of the rows has one key.
      session
        .range(0, 20000, 1, 2)
        .selectExpr("if(id % 5 = 0, 0, id) AS k", "sha2(string(id), 256) AS v")
        .createTempView("skewed")
      def query(hint: String) = session.sql(
        s"SELECT $hint k, row_number() OVER (PARTITION BY k ORDER BY v) AS place FROM skewed"
      )
      val even = only(decisionsOf(session, query("")))
      val balanced = only(decisionsOf(session, query("/*+ RANGES(balanced) */")))
      assert(even.layout == "even" && balanced.layout == "balanced")
      assert(balanced.largestTaskBytes < even.largestTaskBytes)
      assert(balanced.tasks == balanced.ranges.size && balanced.tasks <= 3)
      assert(balanced.reason.contains("balanced ranges (hint on the query block, line 1)"))
      assert(query("/*+ RANGES(balanced) */").collect().length == 20000)
    }
  }

  test("the record names the hint and its line") {
    def sources(query: String, operator: Int) = {
      val decisions = decisionsOf(query, settings: _*).filter(_.kind != "unchanged")
      decisions(operator).sources
    }
    val nested = """SELECT /*+ PARALLELISM(8),
                   |  DATA_VOLUME('1MB') */ c, count(*) FROM (
                   |  SELECT /*+ BROADCAST_RATIO(0.3) */ k, count(*) AS c FROM numbers GROUP BY k) GROUP BY c""".stripMargin
    val inner = sources(nested, 0)
    assert(inner("parallelism") == "hint on an enclosing block, line 1")
    assert(inner("dataVolumePerTask") == "hint on an enclosing block, line 1")
    assert(inner("broadcastRatio") == "hint on the query block, line 3")
    assert(inner("minTaskVolume") == "default")
    assert(sources(nested, 1)("parallelism") == "hint on the query block, line 1")
    val decision = decisionOf("SELECT /*+ PARALLELISM(8) */ k, count(*) FROM numbers GROUP BY k", settings: _*)
    assert(decision.reason.startsWith("8 tasks: parallelism is set to 8 (hint on the query block, line 1), "))
  }

  test("Spark's switch for hints and enabled=false both switch off hints") {
    val query = "SELECT /*+ PARALLELISM(8) */ k, count(*) FROM numbers GROUP BY k"
    assert(decisionOf(query, settings :+ ("spark.sql.optimizer.disableHints" -> "true"): _*).tasks == 3)
    assert(decisionsOf(query, settings :+ ("enabled" -> "false"): _*).isEmpty)
    // Which Spark cannot analyze with a hint that it does not know.
    val ordered = s"$query ORDER BY sum(id)"
    assert(decisionsOf(ordered, settings :+ ("enabled" -> "false"): _*).isEmpty)
  }
}
