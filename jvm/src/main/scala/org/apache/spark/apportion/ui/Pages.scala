package org.apache.spark.apportion.ui

import scala.jdk.CollectionConverters._
import scala.util.Try
import scala.xml.{Elem, Node}

import com.fasterxml.jackson.databind.JsonNode
import io.apportion.decision.Bytes
import io.apportion.report.ShortForm
import org.apache.spark.ui.{UIUtils, WebUIPage}

/** All queries with their decisions in short. */
private[ui] final class QueriesPage(tab: ApportionTab) extends WebUIPage("") {

  override def render(request: Servlet.Request): Seq[Node] = {
    val queries = tab.decisions.byQuery.toSeq.sortBy(-_._1)
    val content =
      if (queries.isEmpty) <p>No decision yet: they come with the first query that shuffles rows.</p>
      else
        UIUtils.listingTable[(Long, Seq[JsonNode])](
          Seq("Query", "Decisions", "Tasks decided", "Largest task", "Parallelism"),
          { case (query, decisions) => row(request, query, decisions) },
          queries,
          id = Some("apportion-queries")
        )
    UIUtils.headerSparkPage(request, "Apportion", content, tab)
  }

  private def row(request: Servlet.Request, query: Long, decisions: Seq[JsonNode]): Seq[Node] =
    <tr>
      <td><a href={s"${UIUtils.prependBaseUri(request, tab.basePath)}/apportion/query/?id=$query"}>{query}</a></td>
      <td>{decisions.size}</td>
      <td>{decisions.map(_.path("tasks").asLong).sum}</td>
      <td>{Bytes.text(decisions.map(_.path("largest_task_bytes").asLong).max)}</td>
      <td>{
      decisions
        .map(decision => s"${decision.path("operator").asText}: ${decision.path("parallelism").asText}")
        .mkString(", ")
    }</td>
    </tr>
}

/** The decisions of one query, with their reasons and ranges. */
private[ui] final class QueryPage(tab: ApportionTab) extends WebUIPage("query") {

  override def render(request: Servlet.Request): Seq[Node] = {
    val query = Option(request.getParameter("id")).flatMap(id => Try(id.toLong).toOption)
    val decisions = query.flatMap(tab.decisions.byQuery.get).getOrElse(Nil)
    val title = s"Decisions about query ${query.fold("")(_.toString)}"
    val content =
      if (decisions.isEmpty) <p>There are no decisions about this query.</p>
      else <div>{link(request, query.get)}{decisions.map(section)}</div>
    UIUtils.headerSparkPage(request, title, content, tab)
  }

  private def link(request: Servlet.Request, query: Long): Elem =
    <p><a href={s"${UIUtils.prependBaseUri(request, tab.basePath)}/SQL/execution/?id=$query"}>Its plan</a></p>

  private def section(decision: JsonNode): Elem =
    <section>
      <h4>{s"${decision.path("operator").asText}: ${decision.path("tasks").asText} tasks"}</h4>
      <p>{decision.path("reason").asText}</p>
      {plot(decision)}
      <details>
        <summary>All numbers</summary>
        <table class="table table-sm">{
      decision.properties.asScala.toSeq
        .filterNot(entry => Set("subpartition_bytes", "ranges", "ranges_text", "reason")(entry.getKey))
        .map(entry => <tr><th scope="row">{entry.getKey}</th><td>{text(entry.getValue)}</td></tr>)
    }</table>
      </details>
    </section>

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
    else new RangesPlot(ShortForm.spread(Bytes.sumEach(sums), width, subpartitions), ranges).svg
  }
}
