package io.apportion.history

import java.nio.file.attribute.FileTime
import java.nio.file.{Files, Path}
import java.security.PrivilegedAction
import java.time.Instant
import java.time.temporal.ChronoUnit.DAYS
import java.util.UUID
import java.util.concurrent.TimeUnit

import scala.jdk.CollectionConverters._

import io.apportion.SparkSuite
import io.apportion.joins.KnownBroadcasts
import io.apportion.rules.Logged
import org.apache.hadoop.security.UserGroupInformation
import org.apache.spark.sql.{Row, SparkSession}
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec
import org.apache.spark.sql.execution.exchange.BroadcastExchangeExec

/** What an application knows from earlier ones. A driver of 64 MiB records broadcast tables of over 1.4 MiB. */
class HistorySuite extends SparkSuite {

  override protected def submitTimeConf: Map[String, String] = Map(
    "spark.testing.memory" -> (64 << 20).toString,
    "spark.testing.reservedMemory" -> "0",
    "spark.apportion.history.path" -> directory().toString,
    "spark.hadoop.fs.gated.impl" -> classOf[GatedFileSystem].getName
  )

  private val patient = HistoryTimeouts(planning = TimeUnit.MINUTES.toNanos(1))

  private val fingerprint = PlanFingerprint("0123456789abcdef" * 2, "a1b2c3")

  private def sized(bytes: Long, leafBytes: Long = 100, literals: String = fingerprint.literals, at: Long = 1): Run =
    Run(literals, bytes, leafBytes, at)

  /** Runs the body as an application of its own. Returns its result, and what the history logs. */
  private def inApplication[A](directory: Path)(body: History => A): (A, Seq[String]) =
    inApplication(directory.toString)(body)

  private def inApplication[A](path: String)(body: History => A): (A, Seq[String]) = {
    var result = Option.empty[A]
    val lines = Logged.by(classOf[History].getName) {
      History.reopen(spark.sparkContext, path, patient)
      try result = Some(body(current))
      finally end()
    }
    (result.get, lines)
  }

  private def current: History = History.of(spark.sparkContext, "").get

  /** Ends the application. */
  private def end(): Unit =
    History.reopen(spark.sparkContext, spark.conf.get("spark.apportion.history.path"), patient)

  /** A query that broadcasts a table of 3.2 MB. */
  private def query(factor: Int = 2): String =
    s"SELECT a.id, b.v FROM few a LEFT JOIN (SELECT id AS k, id * $factor AS v FROM range(0, 50000, 1, 2)) b ON a.id = b.k"

  private def collect(query: String, settings: (String, String)*): Seq[Row] =
    withSession(settings: _*)(_.sql(query).collect().toSeq)

  /** Recorded bytes of the table that a query broadcasts. */
  private def recorded(session: SparkSession, query: String): Option[Long] = {
    val plan = session.sql(query).queryExecution.executedPlan
    val adaptive = plan.collectFirst { case adaptive: AdaptiveSparkPlanExec => adaptive }.get
    val broadcast = adaptive.initialPlan.collectFirst { case broadcast: BroadcastExchangeExec => broadcast }.get
    KnownBroadcasts.of(session).recorded(broadcast.child)
  }

  /** Runs a query as an application of its own. Returns the bytes recorded before, and what the history logs. */
  private def run(directory: Path, query: String, settings: (String, String)*): (Option[Long], Seq[String]) =
    inApplication(directory) { _ =>
      withSession(settings: _*) { session =>
        val before = recorded(session, query)
        session.sql(query).collect()
        before
      }
    }

  private def directory(): Path = Files.createTempDirectory("history")

  private def files(directory: Path): Seq[Path] =
    Files.list(directory).iterator.asScala.filter(_.toString.endsWith(".json")).toSeq

  /** Number of runs in the only file. */
  private def runsIn(directory: Path): Int = {
    val kept = files(directory)
    assert(kept.size == 1)
    Files.readString(kept.head).split("literals").length - 1
  }

  test("the second run of a query knows the size of its broadcast table") {
    val kept = directory()
    assert(run(kept, query()) == ((None, Nil)))
    val (size, lines) = run(kept, query())
    assert(size.exists(bytes => bytes > 50000 * 32 && bytes < 50000 * 100) && lines.isEmpty)
  }

  test("no size of a broadcast table is kept without RememberBroadcasts") {
    val kept = directory()
    run(kept, query(), "rules.disabled" -> "RememberBroadcasts")
    assert(files(kept).isEmpty)
    run(kept, query())
    assert(files(kept).nonEmpty)
  }

  test("an application reads what the tasks of a stage needed in an earlier one") {
    val kept = directory()
    val needed =
      StageRun(stored = 1000, tasks = 2, memory = 5000, spilled = 400, failures = 1, helps = false, millis = 7)
    val entry = PlanFingerprint.combined(Seq("a shuffle", "Sort"))
    inApplication(kept)(_.add(entry, Run("", 1000, 0, 1, Some(needed))))
    inApplication(kept) { history =>
      assert(history.last(entry).flatMap(_.stage).contains(needed))
      // A newer run of the same size that needed something else is the last one.
      history.add(entry, Run("", 1000, 0, 2, Some(needed.copy(helps = true))))
      assert(history.last(entry).flatMap(_.stage).exists(_.helps))
    }
  }

  test("the size of a broadcast table is recorded while observing, and a later run knows it") {
    val kept = directory()
    run(kept, query(), "mode" -> "observe")
    assert(run(kept, query())._1.isDefined)
  }

  test("a query with other literals shares the entry of a query but not its size, and another query does not") {
    val kept = directory()
    run(kept, query(2))
    assert(run(kept, query(77777))._1.isEmpty)
    assert(run(kept, query(77777))._1.isDefined && run(kept, query(2))._1.isDefined)
    assert(runsIn(kept) == 2)
    assert(!Files.readString(files(kept).head).contains("77777"))
    assert(run(kept, query(2).replace("id *", "id +"))._1.isEmpty && files(kept).size == 2)
  }

  test("the history has one file per entry, which stays unchanged while runs have the same sizes") {
    val kept = directory()
    def written = files(kept).map(Files.getLastModifiedTime(_))
    inApplication(kept)(_.add(fingerprint.plan, sized(1000)))
    val first = written
    assert(first.size == 1 && Files.list(kept).count == 1)
    Thread.sleep(20)
    inApplication(kept)(_.add(fingerprint.plan, sized(1010, at = 2)))
    assert(written == first)
    inApplication(kept)(_.add(fingerprint.plan, sized(2000, at = 3)))
    assert(written.size == 1 && written != first)
    inApplication(kept)(_.add("ab" * 16, sized(1000)))
    assert(written.size == 2 && Files.list(kept).count == 2)
  }

  test("recorded sizes scale with the bytes that are read now, and stale runs are logged once") {
    val kept = directory()
    inApplication(kept)(_.add(fingerprint.plan, sized(1000, leafBytes = 100)))
    val (sizes, lines) = inApplication(kept)(history => Seq(100L, 300L, 0L).flatMap(history.predict(fingerprint, _)))
    assert(sizes == Seq(1000, 3000, 1000) && lines.isEmpty)
    val (_, stale) = inApplication(kept) { history =>
      assert(history.predict(fingerprint.copy(literals = "ffffff"), 900).isEmpty)
      (1 to 2).foreach(_ => assert(history.predict(fingerprint, 900).isEmpty))
      history.add(fingerprint.plan, sized(9000, leafBytes = 900, at = 2))
    }
    assert(stale.size == 1)
    assert(
      stale.head.endsWith("as its runs are stale: the last run read 100 bytes, and the query reads 900 bytes now")
    )
    assert(inApplication(kept)(_.predict(fingerprint, 900)) == ((Some(9000), Nil)))
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
    ("with a missing field", _.replaceAll("\"stored\":\\d+,", ""), "9223372036854775807, but is missing"),
    ("very long", text => text * 1000, "it is not a JSON object")
  )
  for ((what, spoil, problem) <- broken)
    test(s"a broken history file is ignored with one warning, and written again: $what") {
      val kept = directory()
      inApplication(kept)(_.add(fingerprint.plan, sized(1000)))
      val file = files(kept).head
      Files.writeString(file, spoil(Files.readString(file)))
      val (_, lines) = inApplication(kept) { history =>
        (1 to 2).foreach(_ => assert(history.predict(fingerprint, 100).isEmpty))
        history.add(fingerprint.plan, sized(2000))
      }
      assert(
        lines.size == 1 && lines.head.contains(s"${file.getFileName} is ignored: ") && lines.head.contains(problem)
      )
      assert(inApplication(kept)(_.predict(fingerprint, 100)) == ((Some(2000), Nil)))
    }

  test("a history directory that cannot be used is logged once, and queries run without a history") {
    val file = Files.createTempFile("no", "directory")
    val (size, lines) = run(file, query())
    assert(size.isEmpty)
    assert(lines.size <= 2 && lines.exists(_.startsWith(s"Cannot write the history in $file: ")))
    assert(run(file, query()) == ((None, Nil)))
  }

  test("an application reads what a query cost in an earlier one") {
    val kept = directory()
    val entry = PlanFingerprint.combined(Seq("query", "a test"))
    val cost = QueryCost(
      Seq(StageCost(tasks = 8, millis = 900, longest = 200, delay = 5), StageCost(1, 50, 50, after = Seq(0))),
      tail = 7
    )
    inApplication(kept)(_.add(entry, Run("", 0, 1000, 1, query = Some(cost))))
    assert(inApplication(kept)(_.runs(entry).cost(1000))._1.contains(cost))
    val file = files(kept).head
    val wrong = Files.readString(file).replace("[1,50,50,0,0]", "[1,50,50,0,1]")
    Files.writeString(file, wrong)
    val (read, lines) = inApplication(kept)(_.runs(entry).cost(1000))
    assert(read.isEmpty)
    assert(lines.exists(_.contains("its 'stages' are not lists of numbers")), "no stage waits for itself")
  }

  test("results are the same with and without a history") {
    val kept = directory()
    val all = (1 to 3).map(_ => inApplication(kept)(_ => collect(query()).toSet)._1)
    assert(all.toSet.size == 1 && files(kept).nonEmpty)
  }

  test("a query knows the sizes of an earlier query of the same application at once") {
    inApplication(directory()) { _ =>
      collect(query())
      assert(withSession()(recorded(_, query())).isDefined)
    }
  }

  test("a run with few rows does not replace the sizes of runs with other literals") {
    val kept = directory()
    inApplication(kept)(_.add(fingerprint.plan, sized(9000)))
    inApplication(kept)(_.add(fingerprint.plan, sized(10, literals = "ffffff", at = 2)))
    assert(inApplication(kept)(_.predict(fingerprint, 100)) == ((Some(9000), Nil)))
    assert(runsIn(kept) == 2)
  }

  test("a path of another day shares the entry, and the day counts as a literal") {
    val kept = directory()
    def query(day: Int) = {
      val path = s"$kept/data/dt=2026-11-$day"
      spark.range(50000).selectExpr("id", "id % 7 AS k").write.mode("overwrite").parquet(path)
      s"SELECT a.id, b.k FROM few a LEFT JOIN parquet.`$path` b ON a.id = b.id"
    }
    run(kept, query(22))
    assert(run(kept, query(23))._1.isEmpty)
    assert(run(kept, query(23))._1.isDefined)
    assert(runsIn(kept) == 2)
  }

  private val earlierFormats = Seq(
    "of the first format" -> """"format":"apportion-history-1","stored":5000,"expanded":9000,"leafBytes":0""",
    "with fields that are no longer used" ->
      """"format":"apportion-history-2","runs":[{"literals":"","stored":5000,"expanded":9000,"leafBytes":0,"overload":2.5,"at":0}]"""
  )
  for ((what, fields) <- earlierFormats)
    test(s"a history file $what is read, and rewritten") {
      val kept = directory()
      val file = kept.resolve(s"${fingerprint.plan}.json")
      Files.writeString(file, s"""{"fingerprint":"${fingerprint.plan}",$fields}""")
      val (last, lines) = inApplication(kept) { history =>
        val last = history.last(fingerprint.plan)
        history.add(fingerprint.plan, sized(1000))
        last
      }
      assert(last.contains(Run("", 5000, 0, 0)) && lines.isEmpty)
      assert(inApplication(kept)(_.predict(fingerprint, 100)) == ((Some(1000), Nil)))
      val text = Files.readString(file)
      assert(runsIn(kept) == 2 && text.contains("apportion-history-2") && !text.contains("expanded"))
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
    GatedFileSystem.closed {
      // All predictions together wait for 200 milliseconds.
      val asked = millis((1 to 500).foreach(i => assert(current.predict(PlanFingerprint(s"$i", ""), 1).isEmpty)))
      assert(asked >= 150 && asked < 2000)
      Thread.sleep(400)
      (1 to 3).foreach(factor => collect(query(factor)))
      assert(calls.count(_.startsWith("open")) == 1 && !calls.exists(_.startsWith("create")))
      // In memory there is all that the queries have shown.
      assert(withSession()(recorded(_, query(3))).isDefined)
      assert(millis(end()) < 2000)
    }
    def threads = Thread.getAllStackTraces.keySet.asScala.filter(_.getName == "apportion-history")
    assert(threads.forall(_.isDaemon))
  }

  test("no reader sees a part of a history file, even if a rename does not replace files") {
    val kept = directory()
    Seq(sized(1000), sized(2000, at = 2)).foreach { run =>
      gated(kept)
      current.add(fingerprint.plan, run)
      end()
    }
    assert(
      calls.exists(_.startsWith("rename to ")) && calls.filter(_.startsWith("create")).forall(_.startsWith("create ."))
    )
    assert(runsIn(kept) == 2 && Files.list(kept).count == 1)
  }

  test("applications that write the same entry at the same time keep the runs of both") {
    val kept = directory()
    inApplication(kept)(_.add(fingerprint.plan, sized(1000)))
    inApplication(kept)(_.add(fingerprint.plan, sized(2000, at = 2)))
    val other = Files.readString(files(kept).head)
    val (_, lines) = {
      GatedFileSystem.rivals.add(other)
      inApplication(s"${GatedFileSystem.Scheme}:$kept")(_.add(fingerprint.plan, sized(3000, at = 3)))
    }
    assert(lines.isEmpty && GatedFileSystem.rivals.isEmpty)
    assert(runsIn(kept) == 3 && Files.list(kept).count == 1)
  }

  test("a file that a killed application left behind is deleted after a day") {
    val kept = directory()
    val names = Seq(2, 0).map(days => s".${fingerprint.plan}.json.${UUID.randomUUID()}" -> days)
    for ((name, days) <- names)
      Files.setLastModifiedTime(Files.createFile(kept.resolve(name)), FileTime.from(Instant.now.minus(days, DAYS)))
    inApplication(kept)(_.runs("0" * 32))
    assert(Files.list(kept).iterator.asScala.map(_.getFileName.toString).toSeq == Seq(names.last._1))
  }

  test("history files belong to the user of the application, not of the first query, and the file system is closed") {
    val own = UserGroupInformation.getCurrentUser.getShortUserName
    gated(directory())
    val first: PrivilegedAction[Seq[Row]] = () => collect(query(), "spark.hadoop.gated.token" -> "mine")
    UserGroupInformation.createRemoteUser("another-user").doAs(first)
    end()
    assert(calls.head == s"initialize as $own with null" && calls.last == "close")
  }

  test("the history is written and closed when its application stops") {
    gated(directory())
    collect(query())
    spark.stop()
    assert(calls.last == "close" && calls.exists(_.startsWith("rename to ")))
    assert(History.of(spark.sparkContext, "/tmp").isEmpty)
  }
}

/** Without a history. */
class NoHistorySuite extends SparkSuite {
  test("no history is kept without a path") {
    withSession()(session => assert(session.conf.getOption("spark.apportion.history.path").isEmpty))
    assert(History.of(spark).isEmpty)
  }
}
