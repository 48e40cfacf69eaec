package org.apache.spark.apportion.ui

import scala.jdk.CollectionConverters._
import scala.util.Try
import scala.xml.{Elem, Node}

import io.apportion.decision.Sentence
import io.apportion.decision.ranges.Bytes
import io.apportion.report.ShortForm
import io.apportion.util.AnyVersion
import com.fasterxml.jackson.databind.JsonNode
import org.apache.spark.sql.execution.ui.{SQLExecutionUIData, SparkPlanGraphNode}
import org.apache.spark.ui.{UIUtils, WebUIPage}

/** Lists the streams, and all queries with a summary of their decisions. */
private[ui] final class QueriesPage(tab: ApportionTab) extends WebUIPage("") {
  import QueriesPage.verdict

  override def render(request: Servlet.Request): Seq[Node] = {
    val page = new Page(request, "", tab.decisions.queries, QueriesPage.Rows)
    val content =
      if (page.isEmpty) <p>There are no decisions about queries yet. The first query that shuffles rows makes some.</p>
      else
        <div>{
          UIUtils.listingTable[QuerySummary](
            QueriesPage.Columns,
            row(request, _),
            tab.decisions.newest(page.skipped, page.size),
            id = Some("apportion-queries")
          )
        }{page.links}</div>
    val streams = StreamsSection.of(tab.streams)
    val heading = if (streams.isEmpty) Nil else <h4>Queries</h4>
    Page.html(request, "Apportion", streams ++ heading ++ content, tab)
  }

  private def row(request: Servlet.Request, summary: QuerySummary): Seq[Node] = {
    val execution = tab.decisions.execution(summary.query)
    val sql = if (summary.text.isEmpty) QueryPage.tables(tab.decisions.nodes(summary.query)) else summary.text
    val text = execution.fold(sql)(Execution.text(_, sql))
    val shown = if (text.length > QueriesPage.Characters) s"${text.take(QueriesPage.Characters)}…" else text
    val cells = Seq(
      <td><a href={s"${UIUtils.prependBaseUri(request, tab.basePath)}/apportion/query/?id=${summary.query}"}>{
        summary.query
      }</a></td>,
      <td title={text}>{shown}</td>,
      <td>{execution.fold("")(Execution.status)}</td>,
      Cell.of(execution.fold(0L)(Execution.millis), execution.fold("")(Execution.duration)),
      <td>{summary.decisions}</td>,
      <td>{summary.tasks}</td>,
      Cell.of(summary.largestTaskBytes, Bytes.text(summary.largestTaskBytes)),
      Cell.of(summary.spilledBytes, verdict(summary))
    )
    Cell.row(QueriesPage.Columns, cells)
  }
}

private object QueriesPage {

  /** The problems of the tasks that were decided, in a few words. */
  private def verdict(summary: QuerySummary): String = {
    val problems = (if (summary.spilledBytes == 0) Nil else Seq(s"${Bytes.text(summary.spilledBytes)} spilled")) ++
      (if (summary.memoryFailures == 0) Nil
       else Seq(s"${Sentence.count(summary.memoryFailures, "task")} out of memory"))
    if (problems.nonEmpty) problems.mkString(", ") else if (summary.tasks == 0) "" else "no spill, no failure"
  }

  private val Rows = 100

  /** Maximum number of characters of a query in the list. */
  private val Characters = 120

  private val Columns = Seq(
    "Query",
    "Description",
    "Status",
    "Duration",
    "Decisions",
    "Tasks decided",
    "Largest task",
    "Verdict"
  )
}

/** What Spark knows about a query. */
private object Execution {

  /** The description of a query, and its SQL text if that is another one. */
  def text(execution: SQLExecutionUIData, sql: String): String =
    Seq(execution.description, sql).filter(_.trim.nonEmpty).distinct.mkString(": ")

  /** Spark has an empty message for queries that did not fail. */
  def status(execution: SQLExecutionUIData): String =
    if (execution.completionTime.isEmpty) "running"
    else if (execution.errorMessage.exists(_.nonEmpty)) "failed"
    else "completed"

  def millis(execution: SQLExecutionUIData): Long =
    execution.completionTime.fold(System.currentTimeMillis())(_.getTime) - execution.submissionTime

  def duration(execution: SQLExecutionUIData): String = UIUtils.formatDuration(millis(execution))
}

/** Shows the decisions of one query, with their reasons and ranges. */
private[ui] final class QueryPage(tab: ApportionTab) extends WebUIPage("query") {

  override def render(request: Servlet.Request): Seq[Node] = {
    val query = Option(request.getParameter("id")).flatMap(id => Try(id.toLong).toOption)
    val stored = query.fold(Seq.empty[QueryDecision])(tab.decisions.of)
    val page = new Page(request, s"id=${query.getOrElse("")}&", stored.size, QueryPage.Sections)
    val title = s"Decisions for query ${query.fold("")(_.toString)}"
    val content =
      if (page.isEmpty) <p>There are no decisions for this query.</p>
      else {
        val decisions = stored.map(_.decision)
        val nodes = tab.decisions.nodes(query.get)
        val stages = tab.decisions.ran(tab.decisions.execution(query.get).toSeq.flatMap(_.stages))
        val names = decisions
          .filter(_.has("outcome"))
          .map { decision =>
            decision.path("outcome").path("stage").asInt -> QueryPage.name(decision, nodes)
          }
          .toMap
        val graph = new StageGraph(stages, names.get, stageLink(request, _))
        <div>{header(request, query.get)}{graph.svg}{text(query.get)}{
          decisions.slice(page.skipped, page.skipped + page.size).map(section(request, _, nodes, stages))
        }{page.links}</div>
      }
    Page.html(request, title, content, tab)
  }

  private def header(request: Servlet.Request, query: Long): Seq[Node] = {
    val status = tab.decisions.execution(query).map { execution =>
      s", ${Execution.status(execution)}, ${Execution.duration(execution)}"
    }
    val description = tab.decisions.execution(query).map(_.description).filter(_.trim.nonEmpty)
    val plan = <p><a href={s"${root(request)}/SQL/execution/?id=$query"}>Plan of the query</a>{status.getOrElse("")}</p>
    description.map(each => <p>{each}</p>).toSeq :+ plan
  }

  /** The SQL text of a query, or its beginning. */
  private def text(query: Long): Seq[Node] =
    tab.decisions.summary(query).map(_.text).filter(_.nonEmpty).toSeq.map(sql => <pre>{sql}</pre>)

  private def root(request: Servlet.Request): String = UIUtils.prependBaseUri(request, tab.basePath)

  private def stageLink(request: Servlet.Request, stage: Int): String =
    s"${root(request)}/stages/stage/?id=$stage&attempt=0"

  /**
   * Shows a decision.
   *
   * @param nodes  operators of the query's plan
   * @param stages stages of the query that ran
   */
  private def section(
      request: Servlet.Request,
      decision: JsonNode,
      nodes: Seq[SparkPlanGraphNode],
      stages: Seq[RanStage]
  ): Elem =
    <section>
      <h4>{s"${QueryPage.name(decision, nodes)}: ${Sentence.count(decision.path("tasks").asLong, "task")}"}</h4>
      <p>{decision.path("reason").asText}</p>
      {outcome(request, decision, stages)}
      {plot(decision)}
      <details>
        <summary>All fields</summary>
        <table class="table table-sm">{
      decision.properties.asScala.toSeq
        .filterNot(entry => Set("subpartition_bytes", "ranges", "ranges_text", "reason")(entry.getKey))
        .map(entry => <tr><th scope="row">{entry.getKey}</th><td>{text(entry.getValue)}</td></tr>)
    }</table>
      </details>
    </section>

  /** What happened when the tasks ran; nothing until the stage has ended. */
  private def outcome(request: Servlet.Request, decision: JsonNode, stages: Seq[RanStage]): Seq[Node] = {
    val outcome = decision.path("outcome")
    def of(field: String): Long = outcome.path(field).asLong
    def part(field: String)(text: Long => String): Seq[String] = Seq(of(field)).filter(_ > 0).map(text)
    val millis = stages.map(_.millis).sum
    val ran = stages.filter(_.id == of("stage")).map(_.millis).sum
    val share =
      if (ran > 0 && millis > 0) Seq(s"${(100 * ran / millis).min(100)} % of the run time of all tasks") else Nil
    val parts = share ++
      part("spilled_bytes")(size => s"${Bytes.text(size)} spilled to disk") ++
      part("peak_task_memory")(size => s"up to ${Bytes.text(size)} of memory per task") ++
      part("longest_task_millis")(longest => s"longest task $longest ms, median ${of("median_task_millis")} ms") ++
      part("gc_millis")(time => s"garbage collection $time ms") ++
      part("memory_failures")(failures => s"${Sentence.count(failures, "task")} ran out of memory")
    if (outcome.isObject)
      <p><a href={stageLink(request, of("stage").toInt)}>Stage {of("stage")}</a>{
        if (parts.isEmpty) "" else parts.mkString(": ", "; ", ".")
      }</p>
    else Nil
  }

  private def text(value: JsonNode): String = if (value.isValueNode) value.asText else value.toString

  private def plot(decision: JsonNode): Seq[Node] = {
    val sums =
      decision.path("subpartition_bytes").elements.asScala.map(_.elements.asScala.map(_.asLong).toArray).toSeq
    val width = decision.path("subpartition_bytes_width").asInt(1)
    val subpartitions = decision.path("subpartitions").asInt
    val ranges =
      decision.path("ranges").elements.asScala.map(r => r.path("start").asInt -> r.path("end").asInt).toSeq ++
        ShortForm.ranges(decision.path("ranges_text").asText)
    if (sums.isEmpty) Nil
    else {
      val plot = new RangesPlot(ShortForm.spread(Bytes.sumEach(sums), width, subpartitions), ranges)
      val target = Some(decision.path("data_volume_per_task").asLong).filter(_ > 0 && ranges.nonEmpty)
      plot.subpartitions +: target.map(plot.tasks).toSeq
    }
  }
}

private object QueryPage {
  private val Sections = 20

  /** The last part of a path in the text of a scan: `Location: InMemoryFileIndex(1 paths)[file:/data/sales]`. */
  private val LastPart = """Location: [^\[]*\[[^\],]*/([^\]/,]+)[\],]""".r.unanchored

  /** The operator of a decision, with the table of a scan. */
  private def name(decision: JsonNode, nodes: Seq[SparkPlanGraphNode]): String =
    s"${decision.path("operator").asText}${scanned(decision, nodes).fold("")(name => s" of $name")}"

  /** The table or path of a scan, which is the operator with the metric that the decision names. */
  private def scanned(decision: JsonNode, nodes: Seq[SparkPlanGraphNode]): Option[String] = {
    val metric = Option(decision.path("scan_metric")).filter(_.isIntegralNumber).map(_.asLong)
    nodes.find(node => metric.exists(id => node.metrics.exists(_.accumulatorId == id))).flatMap(table)
  }

  private def table(scan: SparkPlanGraphNode): Option[String] =
    scan.name.trim
      .split("\\s+")
      .drop(2)
      .headOption
      .orElse(scan.desc match {
        case LastPart(name) if !name.endsWith("...") => Some(name)
        case _                                       => None
      })

  /** The tables and paths that a query reads, for queries that have no text to show them. */
  def tables(nodes: Seq[SparkPlanGraphNode]): String = {
    val names = nodes.filter(_.name.startsWith("Scan ")).flatMap(table).distinct
    if (names.isEmpty) "" else names.mkString("reads ", ", ", "")
  }
}

/** One page of a list of `total` items, with links to its neighbours. The first page has number 1. */
private final class Page(request: Servlet.Request, parameters: String, total: Int, val size: Int) {
  private val last = (total + size - 1) / size

  /** The requested page, or the nearest page if that does not exist. */
  private val number = {
    val requested = Option(request.getParameter("page")).flatMap(page => Try(page.toInt).toOption)
    requested.getOrElse(1).min(last).max(1)
  }

  def isEmpty: Boolean = total == 0
  def skipped: Int = (number - 1) * size

  def links: Seq[Node] =
    if (last <= 1) Nil
    else
      <p class="apportion-pages">{if (number > 1) link(number - 1, "Previous") else Nil} {s"Page $number of $last"} {
        if (number < last) link(number + 1, "Next") else Nil
      }</p>

  private def link(to: Int, text: String): Elem = <a href={s"?${parameters}page=$to"}>{text}</a>
}

private object Page {

  /** A page of Spark's UI. */
  def html(request: Servlet.Request, title: String, content: => Seq[Node], tab: ApportionTab): Seq[Node] =
    AnyVersion
      .call(UIUtils, "headerSparkPage", request, title, () => Cell.Style +: content, tab)
      .asInstanceOf[Seq[Node]]
}
