package io.apportion.history

import java.nio.file.{Files, Path}
import java.security.PrivilegedAction
import java.util.concurrent.TimeUnit

import scala.jdk.CollectionConverters._

import io.apportion.SparkSuite
import io.apportion.report.DecisionRecord
import io.apportion.rules.Logged
import org.apache.hadoop.security.UserGroupInformation
import org.apache.spark.sql.{Row, SparkSession}

/** Queries that run again, and what they know of the first time. */
class HistorySuite extends SparkSuite {
  private val active = Seq("mode" -> "active", "dataVolumePerTask" -> "64KB")

  /** Nobody knows before how many rows explode makes. */
  private def manyRows(times: Int, word: String = "a"): String =
    s"SELECT k, max(w) FROM (SELECT k, sha2(string(id * 1000 + n), 256) AS w FROM numbers LATERAL VIEW explode(sequence(1, $times)) AS n " +
      s"WHERE id < 2000 AND k <> ${times + 1} AND string(id) <> '$word') GROUP BY k, w"

  override protected def submitTimeConf: Map[String, String] = Map(
    "spark.apportion.history.path" -> directory().toString,
    "spark.hadoop.fs.gated.impl" -> classOf[GatedFileSystem].getName
  )

  private val patient = HistoryTimeouts(planning = TimeUnit.MINUTES.toNanos(1))

  /** Runs a query as an application of its own would, and gives what was decided for its aggregate, and what was logged. */
  private def run(directory: Path, query: String, more: (String, String)*): (DecisionRecord, Seq[String]) = {
    var decision = Option.empty[DecisionRecord]
    val lines = Logged.by(classOf[History].getName) {
      History.reopen(spark.sparkContext, directory.toString, patient)
      withSession(active ++ more: _*) { session =>
        decision = decisionsOf(session, session.sql(query)).filter(_.subpartitions > 1).lastOption
      }
      end()
    }
    (decision.get, lines)
  }

  /** Ends the application of the last query. */
  private def end(): Unit =
    History.reopen(spark.sparkContext, spark.conf.get("spark.apportion.history.path"), patient)

  private def directory(): Path = Files.createTempDirectory("history")

  private def files(directory: Path): Seq[Path] =
    Files.list(directory).iterator.asScala.filter(_.toString.endsWith(".json")).toSeq

  test("the second run starts from the output sizes of the first run") {
    val kept = directory()
    val (first, _) = run(kept, manyRows(20))
    val (second, lines) = run(kept, manyRows(20))
    assert(first.sources("subpartitions") == "estimate of 0 B or more")
    assert(second.sources("subpartitions").matches("history of [0-9.]+ MiB"))
    assert(second.subpartitions >= 2 * second.raw.get)
    assert(lines.isEmpty)
  }

  test("no history is kept without RememberOutputs") {
    val kept = directory()
    run(kept, manyRows(5), "rules.disabled" -> "RememberOutputs")
    assert(files(kept).isEmpty)
    run(kept, manyRows(5))
    assert(files(kept).nonEmpty)
  }

  test("an application reads what the tasks of a stage needed in an earlier one") {
    val kept = directory()
    def history = History.of(spark.sparkContext, kept.toString).get
    val needed =
      StageRun(stored = 1000, tasks = 2, memory = 5000, spilled = 400, failures = 1, helps = false, millis = 7)
    val entry = PlanFingerprint.combined(Seq("a shuffle", "Sort"))
    History.reopen(spark.sparkContext, kept.toString, patient)
    history.add(entry, Run("", 1000, 1000, 0, 1, 1, Some(needed)))
    History.reopen(spark.sparkContext, kept.toString, patient)
    assert(history.last(entry).flatMap(_.stage).contains(needed))
    // A newer run of the same size that needed something else is the last one.
    history.add(entry, Run("", 1000, 1000, 0, 1, 2, Some(needed.copy(helps = true))))
    assert(history.last(entry).flatMap(_.stage).exists(_.helps))
    end()
  }

  test("output sizes are recorded while observing, and a later run uses them") {
    val kept = directory()
    run(kept, manyRows(20), "mode" -> "observe")
    assert(run(kept, manyRows(20))._1.sources("subpartitions").startsWith("history"))
  }

  test("a query with other literals uses the history of a run, but another query does not") {
    val kept = directory()
    run(kept, manyRows(20))
    assert(run(kept, manyRows(21, word = "b"))._1.sources("subpartitions").startsWith("history"))
    assert(run(kept, manyRows(20).replace("max(w)", "min(w)"))._1.sources("subpartitions").startsWith("estimate of"))
  }

  test("the history has one file per exchange, which stays unchanged while runs produce the same sizes") {
    val kept = directory()
    run(kept, manyRows(5))
    val written = files(kept).map(Files.getLastModifiedTime(_))
    assert(written.size == 1 && Files.list(kept).count == 1)
    Thread.sleep(20)
    run(kept, manyRows(5))
    assert(files(kept).map(Files.getLastModifiedTime(_)) == written)
    run(kept, manyRows(10))
    assert(files(kept).map(Files.getLastModifiedTime(_)) != written)
  }

  test("recorded sizes scale with the bytes that are read now") {
    val kept = directory()
    val path = s"$kept/numbers"
    def write(session: SparkSession, rows: Int): Unit =
      session.range(rows.toLong).selectExpr("id", "id % 7 AS k").write.mode("overwrite").parquet(path)
    write(spark, 10000)
    val (first, _) = run(kept, s"SELECT id, max(k) FROM parquet.`$path` GROUP BY id")
    write(spark, 30000)
    val (second, lines) = run(kept, s"SELECT id, max(k) FROM parquet.`$path` GROUP BY id")
    assert(
      first.sources("subpartitions").startsWith("estimate") && second.sources("subpartitions").startsWith("history")
    )
    assert(second.inputBytes > 2 * first.inputBytes && lines.isEmpty)
    write(spark, 1000000)
    val (third, stale) = run(kept, s"SELECT id, max(k) FROM parquet.`$path` GROUP BY id")
    assert(third.sources("subpartitions").startsWith("estimate"))
    assert(stale.size == 1 && stale.head.contains("is ignored, as its runs are stale: the last run read"))
    assert(
      run(kept, s"SELECT id, max(k) FROM parquet.`$path` GROUP BY id")._1.sources("subpartitions").startsWith("history")
    )
  }

  private val broken: Seq[(String, String => String, String)] = Seq(
    ("truncated", text => text.take(30), "it is not a JSON object"),
    ("empty", _ => "", "it is not a JSON object"),
    ("not JSON", _ => "\u0000\u0001", "it is not a JSON object"),
    ("from another program", _ => "{\"format\": \"parquet\"}", "its format is not apportion-history-2"),
    ("from a later version", _.replace("history-2", "history-3"), "its format is not apportion-history-2"),
    ("without runs", _.replace("runs", "walks"), "it has no runs"),
    ("from another plan", _.replaceAll("fingerprint\":\"....", "fingerprint\":\"beef"), "that of another plan"),
    ("with a negative number", _.replace("stored\":", "stored\":-"), "its 'stored' must be a whole number"),
    (
      "with a number that is too large",
      _.replace("stored\":", "stored\":99999999999999999999"),
      "its 'stored' must be"
    ),
    (
      "with text instead of a number",
      _.replaceAll("leafBytes\":\\d+", "leafBytes\":\"many\""),
      "its 'leafBytes' must be a whole number from 0 to 9223372036854775807, but is \"many\""
    ),
    ("with a missing field", _.replaceAll("\"expanded\":\\d+,", ""), "9223372036854775807, but is missing"),
    ("very long", text => text * 1000, "it is not a JSON object")
  )
  for ((what, spoil, problem) <- broken)
    test(s"a broken history file is ignored with one warning, and written again: $what") {
      val kept = directory()
      run(kept, manyRows(5))
      val file = files(kept).head
      Files.writeString(file, spoil(Files.readString(file)))
      val (decision, lines) = run(kept, manyRows(5))
      assert(decision.sources("subpartitions") == "estimate of 0 B or more")
      assert(
        lines.size == 1 && lines.head.contains(s"${file.getFileName} is ignored: ") && lines.head.contains(problem)
      )
      assert(run(kept, manyRows(5))._1.sources("subpartitions").startsWith("history"))
    }

  test("a history directory that cannot be used is logged once, and queries run without a history") {
    val file = Files.createTempFile("no", "directory")
    val (decision, lines) = run(file, manyRows(5))
    assert(decision.sources("subpartitions") == "estimate of 0 B or more")
    assert(lines.size <= 2 && lines.exists(_.startsWith(s"Cannot write the history in $file: ")))
    assert(run(file, manyRows(5))._2.isEmpty)
  }

  test("an application reads what a query cost in an earlier one") {
    val kept = directory()
    val entry = PlanFingerprint.combined(Seq("query", "a test"))
    val cost = QueryCost(
      Seq(StageCost(tasks = 8, millis = 900, longest = 200, delay = 5), StageCost(1, 50, 50, after = Seq(0))),
      tail = 7
    )
    def inApplication[A](body: History => A): A = {
      History.reopen(spark.sparkContext, kept.toString, patient)
      try body(History.of(spark.sparkContext, kept.toString).get)
      finally end()
    }
    inApplication(_.add(entry, Run("", 0, 0, 1000, 1, 1, query = Some(cost))))
    assert(inApplication(_.runs(entry).cost(1000)).contains(cost))
    val file = files(kept).head
    val wrong = Files.readString(file).replace("[1,50,50,0,0]", "[1,50,50,0,1]")
    Files.writeString(file, wrong)
    val lines = Logged.by(classOf[History].getName)(assert(inApplication(_.runs(entry).cost(1000)).isEmpty))
    assert(lines.exists(_.contains("its 'stages' are not lists of numbers")), "no stage waits for itself")
  }

  test("results are the same with and without a history") {
    val kept = directory()
    def rows(): Set[Row] = withSession()(_.sql(manyRows(3)).collect().toSet)
    val all = (1 to 3).map { _ =>
      History.reopen(spark.sparkContext, kept.toString, patient)
      rows()
    }
    assert(all.toSet.size == 1)
  }

  test("a query uses the sizes of an earlier query of the same application at once") {
    History.reopen(spark.sparkContext, directory().toString, patient)
    def source() = decisionsOf(manyRows(6), active: _*).filter(_.subpartitions > 1).last.sources("subpartitions")
    assert(Seq(source(), source()).map(_.takeWhile(_ != ' ')) == Seq("estimate", "history"))
  }

  test("a run with few rows does not replace the sizes of runs with other literals") {
    val kept = directory()
    def query(least: Int) = s"SELECT concat(id, k), max(k) FROM numbers WHERE id >= $least GROUP BY concat(id, k)"
    val large = run(kept, query(0))._1.inputBytes
    run(kept, query(19990))
    val (third, _) = run(kept, query(7))
    assert(third.sources("subpartitions").startsWith("history"))
    assert(third.subpartitions >= 2 * third.raw.get && third.inputBytes > large / 2)
    assert(Files.readString(files(kept).head).split("literals").length == 4)
    assert(!Files.readString(files(kept).head).contains("19990"))
  }

  test("a path of another day uses the same history, and the day counts as a literal") {
    val kept = directory()
    def query(day: Int) = {
      val path = s"$kept/data/dt=2026-11-$day"
      spark.range(20000).selectExpr("id", "id % 7 AS k").write.mode("overwrite").parquet(path)
      s"SELECT id, max(k) FROM parquet.`$path` GROUP BY id"
    }
    run(kept, query(22))
    assert(run(kept, query(23))._1.sources("subpartitions").startsWith("history"))
    assert(files(kept).size == 1 && Files.readString(files(kept).head).split("literals").length == 3)
  }

  test("history files of the first format are read, and rewritten in the second format") {
    val kept = directory()
    run(kept, manyRows(5))
    val file = files(kept).head
    val fingerprint = file.getFileName.toString.stripSuffix(".json")
    Files.writeString(
      file,
      s"""{"format":"apportion-history-1","fingerprint":"$fingerprint","stored":50000000,"expanded":90000000,"leafBytes":0}"""
    )
    val (decision, lines) = run(kept, manyRows(5))
    assert(decision.sources("subpartitions") == "history of 47.7 MiB or more" && lines.isEmpty)
    assert(Files.readString(file).contains("apportion-history-2"))
  }

  test("a run with too few shuffle partitions is recorded, and the next run has enough of them") {
    val kept = directory()
    val query = "SELECT concat(id, k), max(k) FROM numbers GROUP BY concat(id, k)"
    val (first, _) = run(kept, query, "maxParallelism" -> "2", "dataVolumePerTask" -> "8KB")
    assert(first.subpartitions <= 4 && first.raw.get > 4 * first.subpartitions)
    val overload = "overload\":([0-9.]+)".r.findFirstMatchIn(Files.readString(files(kept).head)).get.group(1)
    assert(overload.toDouble > 3)
    val (second, _) = run(kept, query, "dataVolumePerTask" -> "8KB")
    assert(second.sources("subpartitions").startsWith("history"))
    assert(second.subpartitions >= second.raw.get && !second.clamps.contains("subpartitions"))
  }

  test("a shuffle with Spark's number of partitions is recorded too") {
    val kept = directory()
    run(kept, manyRows(5), "subpartitions" -> "spark")
    assert(run(kept, manyRows(5))._1.sources("subpartitions").startsWith("history"))
  }

  private def gated(kept: Path, timeouts: HistoryTimeouts = patient): Unit = {
    GatedFileSystem.calls.clear()
    History.reopen(spark.sparkContext, s"${GatedFileSystem.Scheme}:$kept", timeouts)
  }

  private def calls: Seq[String] = GatedFileSystem.calls.asScala.toSeq

  private def millis(body: => Unit): Long = {
    val start = System.nanoTime()
    body
    TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - start)
  }

  test("queries do not wait for a file system that hangs, and do not try it again") {
    gated(
      directory(),
      HistoryTimeouts(file = TimeUnit.MILLISECONDS.toNanos(300), end = TimeUnit.MILLISECONDS.toNanos(200))
    )
    def history = History.of(spark.sparkContext, "").get
    GatedFileSystem.closed {
      // All predictions together wait for 200 milliseconds.
      val asked = millis((1 to 500).foreach(i => assert(history.predict(PlanFingerprint(s"$i", ""), 1).isEmpty)))
      assert(asked >= 150 && asked < 2000)
      Thread.sleep(400)
      (1 to 3).foreach(times => decisionsOf(manyRows(times), active: _*))
      assert(calls.count(_.startsWith("open")) == 1 && !calls.exists(_.startsWith("create")))
      // In memory there is all that the queries have produced.
      assert(decisionsOf(manyRows(3), active: _*).last.sources("subpartitions").startsWith("history"))
      assert(millis(end()) < 2000)
    }
    def threads = Thread.getAllStackTraces.keySet.asScala.filter(_.getName == "apportion-history")
    assert(threads.forall(_.isDaemon))
  }

  test("no reader sees a part of a history file, even if a rename does not replace files") {
    val kept = directory()
    gated(kept)
    decisionsOf(manyRows(5), active: _*)
    end()
    gated(kept)
    decisionsOf(manyRows(10), active: _*)
    end()
    assert(
      calls.exists(_.startsWith("rename to ")) && calls.filter(_.startsWith("create")).forall(_.startsWith("create ."))
    )
    assert(files(kept).size == 1 && Files.list(kept).count == 1)
    assert(Files.readString(files(kept).head).split("literals").length == 3)
  }

  test("history files belong to the user of the application, not of the first query, and the file system is closed") {
    val own = UserGroupInformation.getCurrentUser.getShortUserName
    gated(directory())
    val query: PrivilegedAction[Unit] =
      () => decisionsOf(manyRows(5), active :+ "spark.hadoop.gated.token" -> "mine": _*)
    UserGroupInformation.createRemoteUser("another-user").doAs(query)
    end()
    assert(calls.head == s"initialize as $own with null" && calls.last == "close")
  }

  test("the history is written and closed when its application stops") {
    gated(directory())
    decisionsOf(manyRows(5), active: _*)
    spark.stop()
    assert(calls.last == "close" && calls.exists(_.startsWith("rename to ")))
    assert(History.of(spark.sparkContext, "/tmp").isEmpty)
  }
}

/** Without a history. */
class NoHistorySuite extends SparkSuite {
  test("no history is kept without a path") {
    val query = "SELECT k, count(*) FROM numbers LATERAL VIEW explode(sequence(1, 3)) AS n GROUP BY k"
    (1 to 2).foreach { _ =>
      assert(decisionOf(query, "mode" -> "active").sources("subpartitions") == "estimate of 0 B or more")
    }
    withSession()(session => assert(session.conf.getOption("spark.apportion.history.path").isEmpty))
  }
}
