package io.apportion.policies

import java.nio.file.{Files, Path, StandardCopyOption}
import java.util.concurrent.{LinkedBlockingQueue, TimeUnit}

import io.apportion.SparkSuite
import io.apportion.history.GatedFileSystem
import io.apportion.report.{DecisionLog, DecisionRecord, QueryEvent}
import io.apportion.rules.Logged
import org.apache.spark.scheduler.{SparkListener, SparkListenerEvent}
import org.scalatest.concurrent.Eventually
import org.scalatest.time.{Seconds, Span}

/** Rules of the policy file change decisions without a change of the SQL or of the session's settings. */
class ApplyPoliciesSuite extends SparkSuite with Eventually {
  private val folder: Path = Files.createTempDirectory("policies")
  private val file: Path = folder.resolve("policies.yaml")
  private val Fast = PolicyTimes(poll = TimeUnit.MILLISECONDS.toNanos(5))

  override protected def submitTimeConf: Map[String, String] = Map(
    "spark.apportion.policies" -> file.toString,
    "spark.apportion.mode" -> "active",
    "spark.hadoop.fs.gated.impl" -> classOf[GatedFileSystem].getName,
    "spark.sql.shuffle.partitions" -> "8",
    "spark.sql.autoBroadcastJoinThreshold" -> "-1"
  )

  private val query = "SELECT k, count(*) FROM numbers GROUP BY k"

  /** Rules in force during the body. */
  private def withRules[T](rules: String*)(body: => T): T = {
    // The watcher of the test before would read, and log, the new rules too.
    PolicyWatcher.existing(spark.sparkContext).foreach(_.end())
    write(rules: _*)
    PolicyWatcher.reopen(spark.sparkContext, file.toString, PolicyTimes())
    body
  }

  private def write(rules: String*): Unit =
    replace(rules.map("\n  - " + _).mkString("rules:", "", if (rules.isEmpty) " []\n" else "\n"))

  /** Writes the file in one step: a watcher must not read half of it. */
  private def replace(text: String): Path =
    Files.move(Files.writeString(folder.resolve("new"), text), file, StandardCopyOption.ATOMIC_MOVE)

  private def tasksOf(query: String, settings: (String, String)*): Seq[Int] =
    decisionsOf(query, settings: _*).map(_.tasks)

  private def sourceOf(decision: DecisionRecord): String = decision.sources("parallelism")

  private def setting(tasks: Int) = s"settings: {parallelism: $tasks}"

  test("a setting of a rule replaces the setting of the session, and the decision names the rule") {
    withRules(s"{name: sales, match: {table: numbers}, ${setting(7)}}") {
      val decision = decisionOf(query, "parallelism" -> "3")
      assert(decision.tasks == 7 && sourceOf(decision) == "policy file, rule 1 (sales)")
      assert(decision.reason.contains("policy file, rule 1 (sales)"))
      assert(decisionOf("SELECT k, count(*) FROM few GROUP BY k", "parallelism" -> "3").tasks == 3)
    }
  }

  test("a hint in the SQL is above a rule, in its block and in nested blocks") {
    val nested =
      "SELECT /*+ PARALLELISM(2) */ n, count(*) FROM (SELECT k, count(*) AS n FROM numbers GROUP BY k) GROUP BY n"
    withRules("{match: {user: '*'}, hints: PARALLELISM(5), settings: {ranges: balanced}}") {
      assert(tasksOf(query) == Seq(5))
      val hinted = decisionsOf(nested)
      assert(hinted.map(_.parallelism) == Seq(2, 2) && hinted.map(_.layout).contains("balanced"))
    }
  }

  test("a forced hint or setting is above a hint in the SQL") {
    val hinted = "SELECT /*+ PARALLELISM(2) */ k, count(*) FROM numbers GROUP BY k"
    withRules(s"{match: {user: '*'}, ${setting(7)}}")(assert(tasksOf(hinted) == Seq(2)))
    withRules(s"{match: {user: '*'}, ${setting(7)}, force: true}")(assert(tasksOf(hinted) == Seq(7)))
    withRules("{match: {user: '*'}, hints: PARALLELISM(6), force: true}") {
      val decision = decisionOf(hinted)
      assert(decision.tasks == 6 && sourceOf(decision) == "policy file, rule 1")
    }
  }

  test("a forced hint for a nested block is below the hint of the block whose join reads the stage") {
    val joined =
      """SELECT /*+ PARALLELISM(4) */ f.id FROM few f JOIN (
        |  SELECT k, count(*) AS c FROM numbers GROUP BY k) AS by_k ON f.id = by_k.k""".stripMargin
    withRules("{match: {user: '*'}, blocks: {by_k: PARALLELISM(6)}, force: true}")(assert(tasksOf(joined) == Seq(4)))
  }

  test("the first rule that sets a value counts, and forced rules come first") {
    val rules = Seq(
      "{match: {table: numbers}, settings: {parallelism: 3}}",
      "{match: {user: '*'}, settings: {parallelism: 4, ranges: balanced}}"
    )
    withRules(rules: _*) {
      val decision = decisionOf(query)
      assert(decision.tasks == 3 && decision.layout == "balanced")
    }
    withRules(rules :+ "{match: {user: '*'}, settings: {parallelism: 5}, force: true}": _*) {
      assert(tasksOf(query) == Seq(5))
    }
  }

  test("hints for a block reach the common table expression, subquery or view with this name") {
    spark.sql(
      "CREATE OR REPLACE GLOBAL TEMPORARY VIEW by_k AS SELECT k, count(*) AS n FROM (SELECT id % 10 AS k FROM range(0, 100, 1, 2)) GROUP BY k"
    )
    withRules("{match: {user: '*'}, hints: PARALLELISM(2), blocks: {by_k: PARALLELISM(5)}}") {
      val inner = "SELECT k, count(*) AS n FROM numbers GROUP BY k"
      assert(tasksOf(s"WITH by_k AS ($inner) SELECT n, count(*) FROM by_k GROUP BY n") == Seq(5, 2))
      assert(tasksOf(s"SELECT n, count(*) FROM ($inner) AS by_k GROUP BY n") == Seq(5, 2))
      assert(tasksOf("SELECT n, count(*) FROM global_temp.by_k GROUP BY n") == Seq(5, 2))
      assert(tasksOf(s"SELECT n, count(*) FROM ($inner) AS other GROUP BY n") == Seq(2, 2))
    }
  }

  test("a hint that names a table sets the tasks of its scan in every block") {
    val path = folder.resolve("files").toString
    spark.range(0, 2000, 1, 8).write.parquet(path)
    withRules("{match: {table: files}, hints: 'SOURCE_PARALLELISM(files, 3)'}") {
      withSession() { session =>
        session.read.parquet(path).createTempView("files")
        val nested = session.sql("SELECT max(id) FROM (SELECT id FROM files WHERE id > 5)")
        val ruled = decisionsOf(session, nested).filter(_.sources.get("parallelism").contains("policy file, rule 1"))
        assert(ruled.map(_.tasks) == Seq(3))
      }
    }
  }

  test("a rule can match the written table, and a query that CREATE TABLE runs inside") {
    withRules(s"{match: {writes: default.made}, ${setting(3)}}") {
      withSession() { session =>
        try {
          assert(decisionsOf(session, session.sql("SELECT 1")).isEmpty)
          def tasks(statement: String) = {
            val log = DecisionLog.of(session)
            val before = log.all.size
            session.sql(statement)
            log.all.drop(before).map(_.tasks)
          }
          assert(tasks(s"CREATE TABLE made USING parquet AS $query") == Seq(3))
          assert(tasks(s"INSERT INTO made $query") == Seq(3))
          assert(tasks(s"CREATE TABLE other USING parquet AS $query") != Seq(3))
        } finally Seq("made", "other").foreach(table => session.sql(s"DROP TABLE IF EXISTS $table"))
      }
    }
  }

  test("a rule can set the file size of a table with partitions, and no rule of Apportion fails") {
    withRules("{match: {writes: default.sized}, settings: {write.targetFileSize: 64k}}") {
      def filesWith(table: String): Long = {
        val failures = Logged.by("io.apportion.rules.Guarded") {
          spark.sql(
            s"CREATE TABLE $table USING parquet PARTITIONED BY (p) AS SELECT id, id % 2 AS p FROM range(0, 9999, 1, 8)"
          )
        }
        assert(failures.isEmpty)
        try spark.table(table).select("_metadata.file_path").distinct().count()
        finally spark.sql(s"DROP TABLE $table")
      }
      assert(filesWith("sized") == 2 && filesWith("plain") == 16)
    }
  }

  test("a rule can match the text, a job tag, the application and the fingerprint") {
    val fingerprint = loggedFingerprint(s"$query HAVING count(*) > 5")
    withRules(
      "{match: {sql: 'AS marked'}, settings: {parallelism: 3}}",
      "{match: {jobTag: urgent}, settings: {parallelism: 4}}",
      s"{match: {fingerprint: $fingerprint}, settings: {parallelism: 5}}",
      s"{match: {application: '${spark.sparkContext.appName}'}, settings: {parallelism: 6}}"
    ) {
      assert(tasksOf("SELECT k, count(*) AS marked FROM numbers GROUP BY k") == Seq(3))
      spark.sparkContext.addJobTag("urgent")
      try assert(tasksOf(query) == Seq(4))
      finally spark.sparkContext.removeJobTag("urgent")
      assert(tasksOf(s"$query HAVING count(*) > 7") == Seq(5))
      assert(tasksOf(query) == Seq(6))
    }
  }

  /** The fingerprint of a query in the event log. */
  private def loggedFingerprint(query: String): String = {
    val found = new LinkedBlockingQueue[String]
    val listener = new SparkListener {
      override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
        case QueryEvent(json) => found.add(json.get("fingerprint").asText)
        case _                =>
      }
    }
    spark.sparkContext.addSparkListener(listener)
    try {
      decisionsOf(query)
      found.poll(10, TimeUnit.SECONDS)
    } finally spark.sparkContext.removeSparkListener(listener)
  }

  test("a rule can switch Apportion off or observe, but not on") {
    withRules("{match: {table: numbers}, settings: {enabled: false}}") {
      assert(tasksOf(query).isEmpty)
      assert(tasksOf("SELECT k, count(*) FROM few GROUP BY k").size == 1)
    }
    withRules(s"{match: {table: numbers}, ${setting(7)}}")(assert(tasksOf(query, "enabled" -> "false").isEmpty))
  }

  test("bounds of a rule that contradict the session are ignored, and logged") {
    withRules("{name: low, match: {user: '*'}, settings: {maxParallelism: 4, ranges: balanced}}") {
      val lines = Logged.by("io.apportion.policies.PolicyFile") {
        assert(decisionOf(query, "minParallelism" -> "8").tasks == 8)
      }
      assert(lines.size == 1 && lines.head.startsWith("policy file, rule 1 (low): spark.apportion.maxParallelism"))
    }
  }

  test("the maximums of a rule limit the tasks of shuffles and of scans") {
    val path = folder.resolve("lines").toString
    spark.range(0, 20000, 1, 8).selectExpr("string(id) AS value").write.text(path)
    val small =
      Seq("spark.sql.files.openCostInBytes" -> "0", "minTaskVolume" -> "1", "dataVolumePerTask" -> "1KB")
    def tasks(settings: String*): (Seq[Int], Seq[Int]) =
      withRules(s"{match: {table: lines}, settings: {${settings.mkString(", ")}}}") {
        withSession(small: _*) { session =>
          session.read.text(path).createTempView("lines")
          val query = session.sql("SELECT value, count(*) FROM lines GROUP BY value")
          val (scans, shuffles) = decisionsOf(session, query).partition(_.layout == "files")
          (scans.map(_.tasks), shuffles.map(_.tasks))
        }
      }
    val (unlimited, limited) = tasks("maxParallelism: 2")
    assert(unlimited.size == 1 && unlimited.forall(_ > 3) && limited == Seq(2))
    val (scans, shuffles) = tasks("maxParallelism: 2", "sources.maxParallelism: 3")
    assert(scans.size == 1 && scans.forall(_ <= 3) && shuffles == Seq(2))
  }

  test("a subquery and a query that is planned before it runs follow the rules") {
    val subquery =
      s"SELECT (SELECT max(n) FROM (SELECT k, count(*) AS n FROM numbers GROUP BY k)), count(*) FROM few GROUP BY k"
    withRules(s"{match: {sql: 'few'}, ${setting(3)}}", s"{match: {table: numbers}, ${setting(20)}}") {
      assert(tasksOf(subquery).filter(_ > 1).toSet == Set(3))
      withSession() { session =>
        val planned = session.sql(query)
        planned.queryExecution.executedPlan
        assert(decisionsOf(session, planned).map(_.tasks) == Seq(20))
      }
    }
  }

  test("a changed file takes effect while the application runs, and a wrong one leaves the last good rules") {
    write(s"{match: {user: '*'}, ${setting(3)}}")
    val watcher = PolicyWatcher.reopen(spark.sparkContext, file.toString, Fast)
    assert(tasksOf(query) == Seq(3))
    write(s"{match: {user: '*'}, ${setting(5)}}")
    eventually(assert(tasksOf(query) == Seq(5)))
    val lines = Logged.by("io.apportion.policies.PolicyFile") {
      replace("rules: [")
      watcher.awaitLook()
      assert(tasksOf(query) == Seq(5))
      Files.delete(file)
      watcher.awaitLook()
      assert(tasksOf(query) == Seq(5))
    }
    assert(lines.size == 2 && lines.forall(_.endsWith("The 1 rules that were read before stay in force.")), lines)
    assert(lines.head.startsWith(s"Cannot use the policy file $file: "))
    write()
    eventually(assert(tasksOf(query) != Seq(5)))
  }

  test("a wrong rule is left out and logged with the file, and the others are in force") {
    val lines = Logged.by("io.apportion.policies.PolicyFile") {
      withRules("{match: {user: '*'}, settings: {paralelism: 3}}", s"{match: {user: '*'}, ${setting(5)}}") {
        assert(tasksOf(query) == Seq(5))
      }
    }
    assert(
      lines == Seq(
        s"Policy file $file: rule 1: unknown setting paralelism. Did you mean parallelism?. These rules are left out."
      )
    )
  }

  test("a file system that hangs delays only the first query, and the log says so") {
    write(s"{match: {user: '*'}, ${setting(5)}}")
    val lines = Logged.by("io.apportion.policies.PolicyFile") {
      GatedFileSystem.closed {
        val short = TimeUnit.MILLISECONDS.toNanos(10)
        PolicyWatcher.reopen(spark.sparkContext, s"gated:$file", Fast.copy(firstRead = short, late = short))
        assert(tasksOf(query) != Seq(5))
        assert(tasksOf(query) != Seq(5))
      }
    }
    assert(lines.map(_.takeWhile(_ != ' ')) == Seq("No") && lines.head.endsWith("No rules are in force."))
    eventually(assert(tasksOf(query) == Seq(5)))
  }

  test("sessions cannot name another file") {
    withSession() { session =>
      val error = intercept[Exception](session.sql("SET spark.apportion.policies=/other.yaml"))
      assert(error.getMessage.contains("spark.apportion.policies"))
    }
  }

  override implicit def patienceConfig: PatienceConfig = PatienceConfig(timeout = Span(10, Seconds))
}
