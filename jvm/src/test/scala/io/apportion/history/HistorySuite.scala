package io.apportion.history

import java.nio.file.{Files, Path}

import scala.jdk.CollectionConverters._

import io.apportion.report.DecisionRecord
import io.apportion.{Logged, SparkSuite}
import org.apache.spark.sql.{Row, SparkSession}

/** Queries that run again, and what they know of the first time. */
class HistorySuite extends SparkSuite {
  private val active = Seq("mode" -> "active", "dataVolumePerTask" -> "64KB")

  /** Nobody knows before how many rows explode makes. */
  private def manyRows(times: Int, word: String = "a"): String =
    s"SELECT k, max(w) FROM (SELECT k, sha2(string(id * 1000 + n), 256) AS w FROM numbers LATERAL VIEW explode(sequence(1, $times)) AS n " +
      s"WHERE id < 2000 AND k <> ${times + 1} AND string(id) <> '$word') GROUP BY k, w"

  /** Runs a query as an application of its own would, and gives what was decided for its aggregate, and what was logged. */
  private def run(directory: Path, query: String): (DecisionRecord, Seq[String]) = {
    History.forget()
    var decision = Option.empty[DecisionRecord]
    val lines = Logged.by(classOf[History].getName) {
      withSession(active :+ "history.path" -> directory.toString: _*) { session =>
        decision = decisionsOf(session, session.sql(query)).filter(_.subpartitions > 1).lastOption
      }
    }
    (decision.get, lines)
  }

  private def directory(): Path = Files.createTempDirectory("history")

  private def files(directory: Path): Seq[Path] =
    Files.list(directory).iterator.asScala.filter(_.toString.endsWith(".json")).toSeq

  test("the second run starts from what the first produced") {
    val kept = directory()
    val (first, _) = run(kept, manyRows(20))
    val (second, lines) = run(kept, manyRows(20))
    assert(first.sources("subpartitions") == "power of two for Spark's 200")
    assert(second.sources("subpartitions").matches("history of [0-9.]+ MiB"))
    assert(second.subpartitions >= 2 * second.raw.get)
    assert(lines.isEmpty)
  }

  test("so does a query with other literals, but no other query") {
    val kept = directory()
    run(kept, manyRows(20))
    assert(run(kept, manyRows(21, word = "b"))._1.sources("subpartitions").startsWith("history"))
    assert(run(kept, manyRows(20).replace("max(w)", "min(w)"))._1.sources("subpartitions").startsWith("power of two"))
  }

  test("a file for each exchange, which stays as it is while the next runs produce as much") {
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

  test("what is read now scales what was produced then") {
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
    assert(stale.size == 1 && stale.head.contains("is stale: its query read"))
    assert(
      run(kept, s"SELECT id, max(k) FROM parquet.`$path` GROUP BY id")._1.sources("subpartitions").startsWith("history")
    )
  }

  private val broken: Seq[(String, String => String, String)] = Seq(
    ("cut off", text => text.take(30), "it holds no JSON object"),
    ("empty", _ => "", "it holds no JSON object"),
    ("no JSON", _ => "\u0000\u0001", "it holds no JSON object"),
    ("another program's", _ => "{\"format\": \"parquet\"}", "its format is not apportion-history-1"),
    ("a later version's", _.replace("history-1", "history-2"), "its format is not apportion-history-1"),
    ("another plan's", _.replaceAll("fingerprint\":\"....", "fingerprint\":\"beef"), "it is about another plan"),
    ("less than nothing", _.replace("stored\":", "stored\":-"), "not a number of bytes"),
    ("too large a number", _.replace("stored\":", "stored\":99999999999999999999"), "not a number of bytes"),
    (
      "no number",
      _.replaceAll("leafBytes\":\\d+", "leafBytes\":\"many\""),
      "its 'leafBytes' is \"many\", not a number"
    ),
    ("incomplete", _.replaceAll("\"expanded\":\\d+,", ""), "its 'expanded' is missing"),
    ("very long", text => text * 1000, "it holds no JSON object")
  )
  for ((what, spoil, problem) <- broken)
    test(s"history that is of no use is left out with one line, and written anew: $what") {
      val kept = directory()
      run(kept, manyRows(5))
      val file = files(kept).head
      Files.writeString(file, spoil(Files.readString(file)))
      val (decision, lines) = run(kept, manyRows(5))
      assert(decision.sources("subpartitions") == "power of two for Spark's 200")
      assert(
        lines.size == 1 && lines.head.contains(s"${file.getFileName} is left out: ") && lines.head.contains(problem)
      )
      assert(run(kept, manyRows(5))._1.sources("subpartitions").startsWith("history"))
    }

  test("a directory that cannot be used is named once, and queries run without") {
    val file = Files.createTempFile("no", "directory")
    val (decision, lines) = run(file, manyRows(5))
    assert(decision.sources("subpartitions") == "power of two for Spark's 200")
    assert(lines.size <= 2 && lines.exists(_.startsWith(s"Cannot write the history in $file: ")))
    assert(run(file, manyRows(5))._2.isEmpty)
  }

  test("without a path nothing is kept") {
    assert(decisionOf(manyRows(5), active: _*).sources("subpartitions") == "power of two for Spark's 200")
    withSession()(session => assert(session.conf.getOption("spark.apportion.history.path").isEmpty))
  }

  test("results are the same with history as without") {
    val kept = directory()
    def rows(more: (String, String)*): Set[Row] = withSession(more: _*)(_.sql(manyRows(3)).collect().toSet)
    val without = rows()
    assert((1 to 2).forall(_ => rows("history.path" -> kept.toString) == without))
  }
}
