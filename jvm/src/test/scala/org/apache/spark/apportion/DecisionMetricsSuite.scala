package org.apache.spark.apportion

import java.net.URI
import java.nio.charset.StandardCharsets.UTF_8

import io.apportion.SparkSuite
import org.scalatest.concurrent.Eventually
import org.scalatest.time.{Seconds, Span}

class DecisionMetricsSuite extends SparkSuite with Eventually {
  implicit override val patienceConfig: PatienceConfig = PatienceConfig(timeout = Span(30, Seconds))

  override protected def submitTimeConf: Map[String, String] = Map(
    "spark.ui.enabled" -> "true",
    "spark.ui.port" -> "0",
    "spark.metrics.conf.*.sink.prometheusServlet.class" -> "org.apache.spark.metrics.sink.PrometheusServlet",
    "spark.metrics.conf.*.sink.prometheusServlet.path" -> "/metrics/prometheus"
  )

  private def count(name: String): Long =
    DecisionMetrics.ofActive(spark.sparkContext).get.metricRegistry.counter(name).getCount

  private val query = "SELECT id % 999 AS k, count(*) FROM range(0, 20000, 1, 2) GROUP BY 1"

  test("decisions, the limits that changed them, and the time of rules are counted") {
    val (decisions, explicit, nanos) = (count("decisions"), count("limits.explicit"), count("rules.nanos"))
    withSession("parallelism" -> "3")(_.sql(query).collect())
    assert(count("decisions") == decisions + 1)
    assert(count("limits.explicit") == explicit + 1)
    assert(count("rules.nanos") > nanos)
    withSession()(_.sql(query).collect())
    assert(count("decisions") == decisions + 2)
    assert(count("limits.explicit") == explicit + 1)
  }

  test("bytes that tasks spilled are counted when their stage has ended") {
    val spilled = count("tasks.spilledBytes")
    withSession(
      "spark.sql.windowExec.buffer.spill.threshold" -> "10",
      "spark.sql.windowExec.buffer.in.memory.threshold" -> "10"
    ) {
      _.sql("SELECT id, sum(id) OVER (PARTITION BY id % 2) FROM range(0, 2000, 1, 2)").collect()
    }
    eventually(assert(count("tasks.spilledBytes") > spilled))
  }

  test("a Prometheus sink of Spark has the counters") {
    withSession()(_.sql(query).collect())
    val page = URI.create(s"${spark.sparkContext.uiWebUrl.get}/metrics/prometheus").toURL.openStream()
    val lines =
      try new String(page.readAllBytes(), UTF_8).linesIterator.filter(_.contains("_apportion_")).toSeq
      finally page.close()
    val decisions = lines.find(_.contains("_driver_apportion_decisions_Count")).map(_.split(" ").last.toLong)
    assert(decisions.contains(count("decisions")), lines.mkString("\n"))
  }
}
