package org.apache.spark.apportion

import java.nio.file.{Files, Path}

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import io.apportion.SparkSuite
import io.apportion.report.{DecisionEvent, DecisionRecord, QueryEvent}
import org.apache.spark.SparkFirehoseListener
import org.apache.spark.scheduler._
import org.apache.spark.sql.functions.{abs, lit}

/** Decisions in Spark's event log, and how they come out of it. */
class EventLogSuite extends SparkSuite {
  private lazy val directory: Path = Files.createTempDirectory("event-log")

  override protected def submitTimeConf: Map[String, String] = Map(
    "spark.eventLog.enabled" -> "true",
    "spark.eventLog.dir" -> directory.toUri.toString,
    "spark.eventLog.compress" -> "false",
    "spark.eventLog.rolling.enabled" -> "false"
  )

  private val sql = "SELECT k, count(*) FROM numbers WHERE k <> 5 GROUP BY k"

  private lazy val lines: Seq[String] = {
    withSession("parallelism" -> "3")(_.sql(sql).collect())
    spark.sparkContext.listenerBus.waitUntilEmpty()
    Files.list(directory).iterator.asScala.toSeq.flatMap(Files.readAllLines(_).asScala)
  }

  private def isDecision(line: String): Boolean = line.contains("\"Event\":\"io.apportion.report.DecisionEvent\"")

  /** What a history server would be told, and whether it got to the end. */
  private def replay(lines: Seq[String]): (Seq[SparkListenerEvent], Boolean) = {
    val events = mutable.Buffer.empty[SparkListenerEvent]
    val bus = new ReplayListenerBus
    bus.addListener(new SparkFirehoseListener {
      override def onEvent(event: SparkListenerEvent): Unit = events += event
    })
    val whole = bus.replay(lines.iterator, "log", maybeTruncated = false, ReplayListenerBus.SELECT_ALL_FILTER)
    (events.toSeq, whole)
  }

  test("the event log has every decision, with the bytes of its shuffle partitions") {
    val decision =
      replay(lines)._1.collect { case DecisionEvent(decision) => decision }.find(_.get("tasks").asInt == 3).get
    val bytes = decision.get("subpartition_bytes").elements.asScala.map(_.elements.asScala.map(_.asLong).toSeq).toSeq
    assert(bytes.map(_.size) == Seq(decision.get("subpartitions").asInt))
    assert(bytes.flatten.sum == decision.get("input_bytes").asLong)
    assert(decision.get("reason").asText.startsWith("3 tasks: parallelism is set to 3"))
    assert(decision.get("query").isIntegralNumber && decision.get("ranges").size == 3)
  }

  test("the event log has the text and the optimized plan of a query, and decisions refer to its operators") {
    val events = replay(lines)._1
    val decision = events.collect { case DecisionEvent(decision) => decision }.find(_.get("tasks").asInt == 3).get
    val query = events.collectFirst {
      case QueryEvent(query) if query.get("query") == decision.get("query") => query
    }.get
    val operators = query.get("operators").elements.asScala.toSeq
    assert(query.get("sql").asText == sql)
    assert(query.get("fingerprint").asText.matches("[0-9a-f]{32}"))
    assert(
      operators.map(o => o.get("depth").asInt -> o.get("name").asText).take(2) == Seq(0 -> "Aggregate", 1 -> "Project")
    )
    val aggregate = operators.head
    assert(sql.substring(aggregate.get("start").asInt, aggregate.get("stop").asInt + 1) == "GROUP BY k")
    assert(decision.get("operators").elements.asScala.map(_.asInt).toSeq == Seq(0))
  }

  /** Apportion's events of a query. */
  private def posted(query: String, settings: (String, String)*)(
      check: (Seq[SparkListenerEvent], Seq[DecisionRecord]) => Unit
  ): Unit = {
    val events = mutable.Buffer.empty[SparkListenerEvent]
    val listener = new SparkListener {
      override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
        case _: DecisionEvent | _: QueryEvent => events += event
        case _                                =>
      }
    }
    spark.sparkContext.addSparkListener(listener)
    val told = decisionsOf(query, settings: _*)
    spark.sparkContext.listenerBus.waitUntilEmpty()
    spark.sparkContext.removeSparkListener(listener)
    check(events.toSeq, told)
  }

  test("the event log has a query once, with its subqueries, before its decisions") {
    posted("SELECT k, count(*) AS n FROM numbers GROUP BY k HAVING n > (SELECT count(*) FROM few)") { (events, _) =>
      val queries = events.collect { case QueryEvent(query) => query }
      assert(queries.size == 1 && events.head.isInstanceOf[QueryEvent])
      assert(queries.head.get("operators").elements.asScala.count(_.get("depth").asInt == 0) == 2)
      val places = events.collect { case DecisionEvent(decision) => decision.get("operators") }
      assert(places.size == 2 && places.toSet.size == 2)
    }
  }

  test("a query that is too deep for the thread of listeners has an event, and the application goes on") {
    val seen = mutable.Buffer.empty[String]
    val listener = new SparkListener {
      override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
        case QueryEvent(query) => seen += query.toString
        case _                 =>
      }
    }
    spark.sparkContext.addSparkListener(listener)
    withSession() { session =>
      val run: Runnable = () => {
        // The optimizer makes it a literal, with the large stack of this thread. The analyzed plan stays deep.
        val nested = (1 to 5000).foldLeft(lit(1))((inner, _) => abs(inner))
        assert(session.table("numbers").where(nested > 0).groupBy("k").count().collect().length == 1000)
      }
      val thread = new Thread(null, run, "deep query", 2L << 30)
      thread.start()
      thread.join()
      spark.sparkContext.listenerBus.waitUntilEmpty()
      assert(seen.size == 1 && session.range(10).count() == 10)
    }
    spark.sparkContext.removeSparkListener(listener)
  }

  test("no events are posted with events.enabled=false") {
    posted(sql, "events.enabled" -> "false")((events, told) => assert(told.size == 1 && events.isEmpty))
  }

  test("a history server with another version of Apportion reads events with unknown fields") {
    val later = lines.map(line =>
      if (isDecision(line)) line.replace("\"decision\":{", "\"more\":[1],\"decision\":{\"later\":{\"a\":1},") else line
    )
    val (events, whole) = replay(later)
    assert(whole && events.size >= lines.size - lines.count(isDecision))
  }

  test("a history server without Apportion ignores decisions") {
    val foreign = lines.map(_.replace("io.apportion.report.DecisionEvent", "io.missing.DecisionEvent"))
    val (events, whole) = replay(foreign)
    assert(whole && lines.count(isDecision) > 0)
    assert(events.size == lines.size - lines.count(isDecision))
  }

  test("events have the same decisions as the session") {
    posted("SELECT a.k, count(*) FROM numbers a JOIN few b ON a.id = b.id GROUP BY a.k ORDER BY a.k") {
      (events, told) =>
        val decided = events.collect { case DecisionEvent(decision) =>
          (decision.get("query").asLong, decision.get("group").asInt, decision.get("reason").asText)
        }
        assert(decided.nonEmpty && decided == told.map(record => (record.query.get, record.group, record.reason)))
    }
  }
}
