package org.apache.spark.apportion

import java.nio.file.{Files, Path}

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import io.apportion.SparkSuite
import io.apportion.report.{DecisionEvent, DecisionLog}
import org.apache.spark.SparkFirehoseListener
import org.apache.spark.scheduler._

/** Decisions in Spark's event log, and how they come out of it. */
class EventLogSuite extends SparkSuite {
  private lazy val directory: Path = Files.createTempDirectory("event-log")

  override protected def submitTimeConf: Map[String, String] = Map(
    "spark.eventLog.enabled" -> "true",
    "spark.eventLog.dir" -> directory.toUri.toString,
    "spark.eventLog.compress" -> "false",
    "spark.eventLog.rolling.enabled" -> "false"
  )

  private lazy val lines: Seq[String] = {
    withSession("parallelism" -> "3")(_.sql("SELECT k, count(*) FROM numbers WHERE k <> 5 GROUP BY k").collect())
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

  test("every decision is in the log, with the bytes of the subpartitions that it was made from") {
    val decision =
      replay(lines)._1.collect { case DecisionEvent(decision) => decision }.find(_.get("tasks").asInt == 3).get
    val bytes = decision.get("subpartition_bytes").elements.asScala.map(_.elements.asScala.map(_.asLong).toSeq).toSeq
    assert(bytes.map(_.size) == Seq(decision.get("subpartitions").asInt))
    assert(bytes.flatten.sum == decision.get("input_bytes").asLong)
    assert(decision.get("reason").asText.startsWith("3 tasks: parallelism is set to 3"))
    assert(decision.get("query").isIntegralNumber && decision.get("ranges").size == 3)
  }

  test("a history server with another version of Apportion reads what it does not know") {
    val later = lines.map(line =>
      if (isDecision(line)) line.replace("\"decision\":{", "\"more\":[1],\"decision\":{\"later\":{\"a\":1},") else line
    )
    val (events, whole) = replay(later)
    assert(whole && events.size >= lines.size - lines.count(isDecision))
  }

  test("a history server without Apportion leaves decisions out") {
    val foreign = lines.map(_.replace("io.apportion.report.DecisionEvent", "io.missing.DecisionEvent"))
    val (events, whole) = replay(foreign)
    assert(whole && lines.count(isDecision) > 0)
    assert(events.size == lines.size - lines.count(isDecision))
  }

  test("what is posted is what the session was told") {
    val posted = mutable.Buffer.empty[(Long, Int, String)]
    val listener = new SparkListener {
      override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
        case DecisionEvent(decision) =>
          posted += ((decision.get("query").asLong, decision.get("group").asInt, decision.get("reason").asText))
        case _ =>
      }
    }
    spark.sparkContext.addSparkListener(listener)
    withSession("parallelism" -> "2") { session =>
      session.sql("SELECT a.k, count(*) FROM numbers a JOIN few b ON a.id = b.id GROUP BY a.k ORDER BY a.k").collect()
      spark.sparkContext.listenerBus.waitUntilEmpty()
      assert(posted.nonEmpty)
      assert(posted == DecisionLog.of(session).all.map(record => (record.query.get, record.group, record.reason)))
    }
  }
}
