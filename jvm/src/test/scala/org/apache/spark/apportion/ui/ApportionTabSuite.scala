package org.apache.spark.apportion.ui

import java.net.URI
import java.net.http.HttpClient.Redirect
import java.net.http.HttpResponse.BodyHandlers
import java.net.http.{HttpClient, HttpRequest, HttpResponse}
import java.nio.file.{Files, Path}

import io.apportion.SparkSuite
import io.apportion.outcomes.OutcomeEvent
import io.apportion.report.{DecisionEvent, DecisionLog, Outcome, QueryEvent}
import io.apportion.streams.{ClickStream, StreamEvent}
import org.apache.spark.apportion.ListenerBus
import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.spark.SparkConf
import org.apache.spark.deploy.history.HistoryServerOf
import org.apache.spark.status.ElementTrackingStore
import org.apache.spark.util.kvstore.InMemoryStore

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

  private val text = "SELECT k, count(*) FROM numbers WHERE id < 19000 GROUP BY k"

  /** A query, its id, and what was decided. */
  private lazy val (query, reason) = withSession("parallelism" -> "3") { session =>
    session.sql(text).collect()
    spark.sparkContext.listenerBus.waitUntilEmpty()
    val decision = DecisionLog.of(session).all.find(_.tasks == 3).get
    (decision.query.get, decision.reason)
  }

  private def check(root: String): Unit = {
    val all = get(s"$root/apportion/")
    assert(all.statusCode == 200)
    assert(all.body.contains(s"/apportion/query/?id=$query") || all.body.contains("Page 1 of"))
    val one = get(s"$root/apportion/query/?id=$query")
    assert(one.statusCode == 200)
    assert(one.body.contains("HashAggregate: 3 tasks") && one.body.contains(reason))
    assert(one.body.contains("shuffle partitions of up to") && one.body.contains("in 3 ranges"))
    assert(one.body.split("<rect").length > 3)
    assert(one.body.contains("the line is the target size per task, 64 MiB") && one.body.contains("<line"))
    assert(one.body.contains(text.replace("<", "&lt;")) && one.body.contains("</a>, completed, "))
    val stage = "/stages/stage/\\?id=\\d+&amp;attempt=0".r.findFirstIn(one.body).get.replace("&amp;", "&")
    assert(get(s"$root$stage").body.contains("Details for Stage"))
  }

  test("the tab shows the decisions of a running application") {
    assert(reason.nonEmpty)
    check(spark.sparkContext.uiWebUrl.get)
  }

  test("the list shows the text, the status and the tasks of a query") {
    assert(reason.nonEmpty)
    val page = get(spark.sparkContext.uiWebUrl.get + "/apportion/").body
    val rows = page.split("<tr>").filter(_.contains("id &lt; 19000"))
    assert(rows.length == 1 && rows.head.contains(">completed</td>"))
    val cells = rows.head.split("<td").map(_.replaceAll("(?s)[^>]*>(.*?)</td>.*", "$1").trim)
    // Two tasks wrote the shuffle, which has no decision, and three read it.
    assert(page.contains("Tasks decided") && cells.slice(5, 7).toSeq == Seq("1", "3"), rows.head)
  }

  test("the page of a query names its job and the tables of its scans, and leaves out what is 0") {
    assert(reason.nonEmpty)
    val path = Files.createTempDirectory("tables").resolve("sales").toString
    val id = withSession() { session =>
      session.range(0, 1000, 1, 2).write.parquet(path)
      spark.sparkContext.setJobDescription("the daily report")
      try session.read.parquet(path).groupBy("id").count().collect()
      finally spark.sparkContext.setJobDescription(null)
      spark.sparkContext.listenerBus.waitUntilEmpty()
      DecisionLog.of(session).all.last.query.get
    }
    val root = spark.sparkContext.uiWebUrl.get
    val page = get(s"$root/apportion/query/?id=$id").body
    assert(page.contains("Scan parquet of sales: ") && page.contains("<p>the daily report</p>"), page)
    assert(page.contains(" % of the run time of all tasks") && !page.contains("0 B spilled"), page)
    val row = get(s"$root/apportion/").body.split("<tr>").filter(_.contains("the daily report"))
    assert(row.length == 1 && row.head.contains("the daily report: reads sales"), row.mkString)
    assert(row.head.contains("no spill, no failure"), row.mkString)
  }

  test("links begin with the path of a proxy") {
    val root = spark.sparkContext.uiWebUrl.get
    assert(
      reason.nonEmpty && get(s"$root/apportion/", "X-Forwarded-Context" -> "/proxied").body
        .contains(s"/proxied/apportion/query/?id=$query")
    )
  }

  test("the page of an unknown query says that there are no decisions") {
    val root = spark.sparkContext.uiWebUrl.get
    for (id <- Seq("999999", "-1", "x", "", "%3Cscript%3Ealert(1)%3C/script%3E")) {
      val page = get(s"$root/apportion/query/?id=$id")
      assert(page.statusCode == 200 && page.body.contains("There are no decisions for this query."))
      assert(!page.body.contains("<script>alert"))
    }
  }

  test("the UI has one tab for several sessions") {
    newSession().sql("SELECT 1").collect()
    newSession().sql("SELECT 1").collect()
    val page = get(spark.sparkContext.uiWebUrl.get + "/jobs/").body
    assert("/apportion/\"".r.findAllIn(page).size == 1)
  }

  private val events = new ObjectMapper

  private def event(query: Long, operator: String): DecisionEvent = new DecisionEvent(
    events.createObjectNode().put("query", query).put("operator", operator).put("parallelism", 2).put("tasks", 2)
  )

  test("many queries, and many decisions of a query, are shown page by page") {
    assert(reason.nonEmpty)
    val root = spark.sparkContext.uiWebUrl.get
    val first = 1000000L
    for (i <- 0 until 250) ListenerBus.post(spark.sparkContext, event(first + i, "Scan"))
    for (i <- 0 until 45) ListenerBus.post(spark.sparkContext, event(first + 500, s"Scan number $i"))
    spark.sparkContext.listenerBus.waitUntilEmpty()
    def links(page: String): Int = "query/\\?id=".r.findAllIn(get(s"$root/apportion/$page").body).size
    assert(links("") == 100 && links("?page=2") == 100 && links("?page=3") == 53)
    assert(links("?page=0") == 100 && links("?page=x") == 100 && links("?page=99") == 53)
    val list = get(s"$root/apportion/").body
    assert(list.contains("Page 1 of 3") && list.contains("?page=2"))
    val last = get(s"$root/apportion/query/?id=${first + 500}&page=3").body
    assert(last.contains("Page 3 of 3") && last.contains(s"?id=${first + 500}&amp;page=2"))
    assert(last.contains("Scan number 44: 2 tasks") && !last.contains("Scan number 39: 2 tasks"))
  }

  test("the list and the page of a query show what spilled") {
    assert(reason.nonEmpty)
    val root = spark.sparkContext.uiWebUrl.get
    val query = 2000000L
    val outcome = Outcome(7, 5L << 20, 3L << 20, 12, 0, 40, 90, 1, 1)
    ListenerBus.post(spark.sparkContext, event(query, "Sort"))
    ListenerBus.post(spark.sparkContext, OutcomeEvent.of(query, 0, outcome))
    spark.sparkContext.listenerBus.waitUntilEmpty()
    val cell =
      s"""<td data-label="Verdict" sorttable_customkey="${5L << 20}">5 MiB spilled, 1 task out of memory</td>"""
    val list = get(s"$root/apportion/").body
    assert(list.contains(cell), list)
    val page = get(s"$root/apportion/query/?id=$query").body
    val text =
      "5 MiB spilled to disk; up to 3 MiB of memory per task; longest task 90 ms, median 40 ms; garbage collection 12 ms; " +
        "1 task ran out of memory."
    assert(page.contains(text), page)
  }

  test("a long SQL text ends with a sign that it is cut") {
    val store = new ElementTrackingStore(new InMemoryStore, new SparkConf(false))
    val writer = new DecisionStore.Writer(store)
    val sql = events.createObjectNode().put("query", 1).put("sql", "SELECT " + "x" * 1000)
    writer.onOtherEvent(new QueryEvent(sql))
    writer.onOtherEvent(event(1, "Scan"))
    val shown = new DecisionStore(store).summary(1).get.text
    assert(shown.length < 600 && shown.endsWith("x … (507 more characters)"))
    store.close()
  }

  test("tasks far above the target size are marked") {
    val ranges = Seq(0 -> 2, 2 -> 3)
    val plot = new RangesPlot(Array(10L, 20L, 500L), ranges).tasks(target = 100).toString
    assert(plot.contains("2 tasks of up to 500 B") && plot.contains("1 orange task far above it"))
    assert("#c2703d".r.findAllIn(plot).size == 1)
  }

  test("shuffle partitions without ranges have no legend and one color") {
    val plot = new RangesPlot(Array(10L, 20L), Nil).subpartitions.toString
    assert(plot.contains("2 shuffle partitions of up to 20 B</figcaption>") && !plot.contains("#c2703d"))
    val split = new RangesPlot(Array(10L, 20L), Seq(0 -> 1)).subpartitions.toString
    assert(split.contains("in 1 range; orange ones are split or read unchanged"))
  }

  test("the graph of a query has its stages with arrows from the stages that they read") {
    assert(reason.nonEmpty)
    val page = get(s"${spark.sparkContext.uiWebUrl.get}/apportion/query/?id=$query").body
    val graph = page.slice(page.indexOf("apportion-stages"), page.indexOf("Stages with their tasks and bytes"))
    val boxes = """(?s)<title>stage \d+, (\d+) tasks(.*?)</title>""".r.findAllMatchIn(graph).map(_.subgroups).toSeq
    assert(boxes.map(_.head) == Seq("2", "3", "2", "3"), graph)
    assert(boxes.head.last.trim.endsWith(" out") && boxes.last.last.contains("HashAggregate") && graph.contains(" in<"))
    // The graph is drawn for a wide and for a narrow screen.
    assert("<path".r.findAllIn(graph).size == 2)
  }

  test("the graph of a query with many stages has those that ran longest") {
    val stages = (0 until 300).map { id =>
      RanStage(id, 2, 10, 20, spilled = 5, millis = id.toLong, parents = Seq(id - 1, id - 2).filter(_ >= 0))
    }
    val graph = new StageGraph(stages, id => Some("x" * id), id => s"/$id").svg.toString
    assert(
      "<rect".r.findAllIn(graph).size == 80 && graph.contains("stage 299, 2 tasks") && !graph.contains("stage 259,")
    )
    assert("<path".r.findAllIn(graph).size == 154 && graph.contains("the 40 of 300 stages that ran longest"))
    assert(graph.contains("▲ 5 B spilled") && graph.contains(">xxxxxxxxxxxxxxxxxxxxxxxxxx…<"))
    assert(new StageGraph(Nil, _ => None, _ => "").svg.isEmpty)
  }

  test("the oldest queries are dropped from the list and from their pages") {
    val store = new ElementTrackingStore(new InMemoryStore, new SparkConf(false))
    val writer = new DecisionStore.Writer(store, maxKept = 5, maxCharacters = 1000)
    val decisions = new DecisionStore(store)
    for (query <- 1L to 4L; _ <- 1 to 2) writer.onOtherEvent(event(query, "Scan"))
    assert(decisions.newest(0, 10).map(_.query) == Seq(4, 3))
    assert(decisions.queries == 2 && decisions.of(2).isEmpty && decisions.of(4).size == 2)
    writer.onOtherEvent(event(5, "x" * 2000))
    assert(decisions.newest(0, 10).map(_.query) == Seq(5) && decisions.of(5).size == 1)
    writer.onOtherEvent(event(5, "Scan"))
    assert(decisions.newest(0, 10).map(_.decisions) == Seq(2) && decisions.of(5).size == 1)
    store.close()
  }

  private def checkStreams(root: String): Unit = {
    val page = get(s"$root/apportion/").body.replaceAll("\\s+", " ")
    assert(page.contains("""<section id="apportion-streams">"""))
    assert(page.contains("Last 2 batches: up to 41 s; the line is the interval of the trigger, 30 s"))
    assert(page.contains("batch 7, 8 state partitions: 41 s") && page.contains("batch 8, 16 state partitions: 12 s"))
    assert(page.contains("8 -&gt; 16 partitions: batches took 41 s of a 30 s trigger for 5 minutes"))
    assert(page.contains("stop 0.7 s, repartition 5.6 s, start 1.9 s") && page.contains(">8.2 s</td>"))
    assert(page.contains("&lt;b&gt;clicks&lt;/b&gt;") && !page.contains("<b>clicks"))
  }

  test("the tab shows the load of streams and their rescales, only if there are streams") {
    val root = spark.sparkContext.uiWebUrl.get
    assert(reason.nonEmpty && !get(s"$root/apportion/").body.contains("apportion-streams"))
    val name = "stream" -> "<b>clicks</b>"
    val records = Seq(
      ClickStream.batch("q", name, "batch_millis" -> 41000),
      ClickStream.rescale("q", name),
      ClickStream.batch("q", name, "batch" -> 8, "partitions" -> 16)
    )
    records.foreach(record => ListenerBus.post(spark.sparkContext, StreamEvent(record)))
    spark.sparkContext.listenerBus.waitUntilEmpty()
    checkStreams(root)
  }

  test("the oldest records of a stream, and the streams that are idle longest, are dropped") {
    val store = new ElementTrackingStore(new InMemoryStore, new SparkConf(false))
    val writer = new StreamStore.Writer(store, maxStreams = 2)
    for (i <- 0 until 300; query <- Seq("b", "a", "c"); if query == "a" || i < 2)
      writer.onOtherEvent(StreamEvent(ClickStream.batch(query, "batch" -> i)))
    for (_ <- 0 until 60) writer.onOtherEvent(StreamEvent(ClickStream.rescale("a")))
    val streams = new StreamStore(store).newest(10)
    val newest = streams.head
    assert(newest.batches.map(_.path("batch").asInt) == (100 until 300) && newest.changes.size == 50)
    assert(streams.tail.map(_.newest.path("query_id").asText) == Seq("c"))
    assert(store.count(classOf[StoredRecord]) == 251)
    store.close()
  }

  test("the tab shows the decisions and the streams of an application in the history server") {
    assert(reason.nonEmpty)
    val id = spark.sparkContext.applicationId
    spark.stop()
    val onDisk = "spark.history.store.path" -> Files.createTempDirectory("history-store").toString
    for (settings <- Seq(Nil, Seq(onDisk)))
      HistoryServerOf.logs(directory, settings: _*) { address =>
        check(s"$address/history/$id")
        checkStreams(s"$address/history/$id")
      }
  }
}
