package org.apache.spark.apportion.ui

import java.net.URI
import java.net.http.HttpClient.Redirect
import java.net.http.HttpResponse.BodyHandlers
import java.net.http.{HttpClient, HttpRequest, HttpResponse}
import java.nio.file.{Files, Path}

import io.apportion.SparkSuite
import io.apportion.report.DecisionLog
import org.apache.spark.deploy.history.HistoryServerOf

/** The tab in the UI of an application that runs, and of one in the history server. */
class ApportionTabSuite extends SparkSuite {
  private lazy val directory: Path = Files.createTempDirectory("event-log")
  private val client = HttpClient.newBuilder().followRedirects(Redirect.NORMAL).build()

  override protected def submitTimeConf: Map[String, String] = Map(
    "spark.ui.enabled" -> "true",
    "spark.ui.port" -> "0",
    "spark.eventLog.enabled" -> "true",
    "spark.eventLog.dir" -> directory.toUri.toString
  )

  private def get(address: String, headers: (String, String)*): HttpResponse[String] = {
    val request = HttpRequest.newBuilder(URI.create(address))
    headers.foreach { case (name, value) => request.header(name, value) }
    client.send(request.build(), BodyHandlers.ofString())
  }

  /** A query, its id, and what was decided. */
  private lazy val (query, reason) = withSession("parallelism" -> "3") { session =>
    session.sql("SELECT k, count(*) FROM numbers GROUP BY k").collect()
    spark.sparkContext.listenerBus.waitUntilEmpty()
    val decision = DecisionLog.of(session).all.find(_.tasks == 3).get
    (decision.query.get, decision.reason)
  }

  private def check(root: String): Unit = {
    val all = get(s"$root/apportion/")
    assert(all.statusCode == 200)
    assert(all.body.contains(s"/apportion/query/?id=$query"))
    val one = get(s"$root/apportion/query/?id=$query")
    assert(one.statusCode == 200)
    assert(one.body.contains("HashAggregate: 3 tasks") && one.body.contains(reason))
    assert(one.body.contains("subpartitions of up to") && one.body.contains("in 3 ranges"))
    assert(one.body.split("<rect").length > 3)
  }

  test("of an application that runs") {
    assert(reason.nonEmpty)
    check(spark.sparkContext.uiWebUrl.get)
  }

  test("behind a proxy, links begin with its path") {
    val root = spark.sparkContext.uiWebUrl.get
    assert(
      reason.nonEmpty && get(s"$root/apportion/", "X-Forwarded-Context" -> "/proxied").body
        .contains(s"/proxied/apportion/query/?id=$query")
    )
  }

  test("queries that are not there") {
    val root = spark.sparkContext.uiWebUrl.get
    for (id <- Seq("999999", "-1", "x", "", "%3Cscript%3Ealert(1)%3C/script%3E")) {
      val page = get(s"$root/apportion/query/?id=$id")
      assert(page.statusCode == 200 && page.body.contains("There are no decisions about this query."))
      assert(!page.body.contains("<script>alert"))
    }
  }

  test("the tab is there once, however many sessions there are") {
    newSession().sql("SELECT 1").collect()
    newSession().sql("SELECT 1").collect()
    val page = get(spark.sparkContext.uiWebUrl.get + "/jobs/").body
    assert("/apportion/\"".r.findAllIn(page).size == 1)
  }

  test("in the history server") {
    assert(reason.nonEmpty)
    val id = spark.sparkContext.applicationId
    spark.stop()
    HistoryServerOf.logs(directory)(address => check(s"$address/history/$id"))
  }
}
