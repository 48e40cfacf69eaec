package io.apportion.hints

import java.nio.file.{Files, Path}

import scala.collection.mutable

import io.apportion.SparkSuite
import org.apache.logging.log4j.LogManager
import org.apache.logging.log4j.core.appender.AbstractAppender
import org.apache.logging.log4j.core.config.Property
import org.apache.logging.log4j.core.{LogEvent, Logger}
import org.apache.spark.sql.AnalysisException

/**
 * What people are told about hints that cannot be used: every message, in `wrong_hints.golden.txt`. Written anew when the
 * environment has `UPDATE_GOLDEN`.
 */
class WrongHintsSuite extends SparkSuite {
  private val golden = Path.of("jvm/src/test/resources/wrong_hints.golden.txt")

  private val wrong = Seq(
    "PARALELISM(8)",
    "PARALLEL(8)",
    "Parallelism_(8)",
    "MIN_PARALLELISM(8)",
    "DATAVOLUMES('1MB')",
    "BRODCAST(t)",
    "REPARTITON(8)",
    "PARALLELISM",
    "PARALLELISM(1, 2, 3)",
    "PARALLELISM('8')",
    "PARALLELISM(8L)",
    "PARALLELISM(eight)",
    "PARALLELISM(2.5)",
    "PARALLELISM(0)",
    "PARALLELISM(-8)",
    "PARALLELISM(3000000000)",
    "PARALLELISM(8, 'x')",
    "PARALLELISM(64, 4)",
    "PARALLELISM(5, 7)",
    "DATA_VOLUME",
    "DATA_VOLUME(256MB)",
    "DATA_VOLUME('256')",
    "DATA_VOLUME('256 apples')",
    "DATA_VOLUME('')",
    "DATA_VOLUME('0MB')",
    "DATA_VOLUME(-1)",
    "DATA_VOLUME('9999999pb')",
    "BROADCAST_RATIO",
    "BROADCAST_RATIO(1)",
    "BROADCAST_RATIO(-0.5)",
    "BROADCAST_RATIO(30)",
    "BROADCAST_RATIO('0.3')",
    "RANGES",
    "RANGES(evn)",
    "RANGES(17)",
    "SLOTS",
    "SLOTS(4)",
    "SLOTS(-1, 4, 8)",
    "SLOTS(0, 0, 8)",
    "SLOTS(1, 4, 'many')",
    "SLOTS(5, 4, 8)",
    "SLOTS(1, 9, 8)",
    "FINISH_WITHIN",
    "FINISH_WITHIN('1 h', 2)",
    "FINISH_WITHIN(600)",
    "FINISH_WITHIN('10')",
    "FINISH_WITHIN('ten minutes')",
    "FINISH_WITHIN('0 s')",
    "FINISH_WITHIN('366 d')",
    "FINISHWITHN('1 h')",
    "SOURCE_PARALLELISM",
    "SOURCE_PARALLELISM(t, 8, 9)",
    "SOURCE_PARALLELISM(0)",
    "SOURCE_PARALLELISM(numbers, 8)",
    "SOURCE_PARALLELISM(nn, 8)",
    "SOURCE_PARALLELISM(somewhere.n, 8)",
    "SOURCE_PARALLELISM('a..b', 8)",
    "SOURCE_PARALLELISM('a`b', 8)",
    "SOURCE_PARALLELISM(8, n)",
    "SOURCE_PARALLELISM(n, many)"
  )

  private val right = Seq(
    "RANGE_JOIN(n, 10)",
    "PARALLELISM(8)",
    "parallelism(4, 64)",
    "DATA_VOLUME('256MB')",
    "DATA_VOLUME(' 1 gib ')",
    "DATA_VOLUME(1000)",
    "DATA_VOLUME(3000000000)",
    "BROADCAST_RATIO(0.3)",
    "BROADCAST_RATIO(3e-1)",
    "RANGES(even)",
    "RANGES('Balanced')",
    "SLOTS(0, 4, 64)",
    "SOURCE_PARALLELISM(16)",
    "SOURCE_PARALLELISM(n, 16)",
    "SOURCE_PARALLELISM('n', 16)",
    "BROADCAST(n)",
    "SKEW('n')",
    "OF_SOMEBODY_ELSE"
  )

  private def query(hint: String): String = s"SELECT 1,\n (SELECT /*+ $hint */ count(*)\n FROM numbers n) AS c"

  private lazy val strict = newSession("hints.strict" -> "true")

  private def refused(hint: String): AnalysisException = intercept[AnalysisException](strict.sql(query(hint)))

  test("the message of every wrong hint is as in the golden file") {
    val found = wrong.map(hint => s"$hint\n  ${refused(hint).getMessage}\n").mkString
    if (sys.env.contains("UPDATE_GOLDEN")) Files.writeString(golden, found)
    assert(found == Files.readString(golden))
  }

  test("correct hints, and hints of other libraries, give no warning") {
    withSession("hints.strict" -> "true")(session => right.foreach(hint => session.sql(query(hint)).collect()))
    assert(warnings(withSession()(session => right.foreach(hint => session.sql(query(hint)).collect()))).isEmpty)
  }

  test("the error of a wrong hint has a class, a state, parameters and a position") {
    val error = refused("PARALLELISM(0)")
    assert(error.errorClass.contains("APPORTION_INVALID_HINT.APH303"))
    assert(error.getSqlState == "42601")
    assert(error.getMessageParameters.get("hint") == "PARALLELISM(0)")
    assert(error.line.contains(2) && error.startPosition.contains(25))
  }

  test("each wrong hint gives one warning without hints.strict, and the query runs without the hint") {
    withSession("parallelism" -> "3") { session =>
      wrong.foreach { hint =>
        val found = warnings(session.sql(query(hint)).collect())
        assert(found.size == 1, hint)
        assert(refused(hint).getMessage.contains(found.head.stripSuffix(" The query runs without this hint.")))
      }
    }
  }

  test("the warning about a hint on a DataFrame has no position") {
    val found = warnings(withSession()(_.table("numbers").hint("parallelism", "x").collect()))
    assert(
      found == Seq(
        "Hint parallelism('x'): PARALLELISM takes a whole number, not 'x'. The query runs without this hint."
      )
    )
  }

  test("the warning about a hint in a view names the view") {
    withSession() { session =>
      session.sql("CREATE TEMP VIEW hinted AS SELECT /*+ PARALLELISM(0) */ * FROM numbers")
      assert(warnings(session.table("hinted").collect()).exists(_.contains("of hinted: PARALLELISM takes a number")))
    }
  }

  /** What is logged about hints meanwhile. */
  private def warnings(body: => Unit): Seq[String] = {
    val lines = mutable.Buffer.empty[String]
    val appender = new AbstractAppender("hints", null, null, false, Property.EMPTY_ARRAY) {
      override def append(event: LogEvent): Unit = lines.synchronized(lines += event.getMessage.getFormattedMessage)
    }
    val logger = LogManager.getLogger(classOf[ResolveBlockHints].getName).asInstanceOf[Logger]
    appender.start()
    logger.addAppender(appender)
    try body
    finally logger.removeAppender(appender)
    lines.toSeq
  }
}
