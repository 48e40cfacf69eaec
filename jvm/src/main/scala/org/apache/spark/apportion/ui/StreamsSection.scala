package org.apache.spark.apportion.ui

import java.time.OffsetDateTime

import scala.util.Try
import scala.xml.{Elem, Node, NodeSeq}

import com.fasterxml.jackson.databind.JsonNode
import io.apportion.decision.ranges.Bytes
import org.apache.spark.ui.UIUtils

/** Shows streams: their load against the trigger, their state, and how they were rescaled. */
private[ui] object StreamsSection {

  /** Maximum number of streams on the page. */
  private val MaxStreams = 20

  private val Columns = Seq(
    "Stream",
    "Policy",
    "State partitions",
    "Target",
    "Task slots",
    "Batch time",
    "Trigger",
    "Rows in per second",
    "Rows processed per second",
    "Backlog",
    "State rows",
    "State size"
  )
  private val ChangeColumns = Seq("Time", "Event", "Batch", "State partitions", "Pause", "Parts of the pause", "Reason")

  /** The section; empty if the application has no streams. */
  def of(streams: StreamStore): Seq[Node] = {
    val total = streams.size
    val shown = streams.newest(MaxStreams)
    val others = if (total > shown.size) <p>{s"The page shows ${shown.size} of $total streams."}</p> else NodeSeq.Empty
    if (shown.isEmpty) Nil
    else
      <section id="apportion-streams">
        <h4>Streams</h4>
        <div class="table-responsive">{
        UIUtils.listingTable[JsonNode](Columns, row(_), shown.map(_.newest), id = Some("apportion-stream-list"))
      }</div>
        {others}
        {shown.map(details)}
      </section>
  }

  private def row(record: JsonNode): Seq[Node] = {
    def value(field: String)(text: Long => String): Elem =
      Some(record.path(field)).filter(_.isNumber).map(_.asLong).fold(<td>unknown</td>)(n => Cell.of(n, text(n)))
    val cells = Seq(
      <td>{record.path("stream").asText}</td>,
      <td>{record.path("policy").asText}</td>,
      value("partitions")(number),
      value("target")(number),
      value("slots")(number),
      value("batch_millis")(UIUtils.formatDuration),
      trigger(record).fold(<td>none</td>)(every => Cell.of(every, UIUtils.formatDuration(every))),
      value("input_rows_per_second")(number),
      value("processed_rows_per_second")(number),
      value("backlog_rows")(rows => s"${number(rows)} rows"),
      value("state_rows")(number),
      value("state_bytes")(Bytes.text)
    )
    Cell.row(Columns, cells)
  }

  private def details(stream: StreamHistory): Elem = {
    val newest = stream.newest
    <section>
      <h5>{newest.path("stream").asText}</h5>
      <p>{newest.path("reason").asText}</p>
      {plot(stream.batches)}
      {changes(stream.changes)}
    </section>
  }

  /** The duration of each batch, with a line at the trigger. The shade changes with the number of state partitions. */
  private def plot(batches: Seq[JsonNode]): Seq[Node] =
    batches.lastOption.toSeq.map { newest =>
      val millis = batches.map(_.path("batch_millis").asLong).toArray
      val partitions = batches.map(_.path("partitions").asInt)
      val changes = partitions.zip(partitions.tail).scanLeft(0) { case (n, (a, b)) => if (a == b) n else n + 1 }
      val goal = trigger(newest)
      val line = goal.fold("")(every => s"; the line is the interval of the trigger, ${UIUtils.formatDuration(every)}")
      val shades = if (changes.last == 0) "" else "; the shade changes with the number of state partitions"
      val label = s"Last ${if (millis.length == 1) "batch" else s"${millis.length} batches"}: up to " +
        s"${UIUtils.formatDuration(millis.max)}$line$shades"
      new BarPlot(
        millis,
        i => s"batch ${batches(i).path("batch").asLong}, ${partitions(i)} state partitions",
        i => RangesPlot.Shades(changes(i) % RangesPlot.Shades.size),
        goal,
        UIUtils.formatDuration
      ).svg(label)
    }

  private def changes(changes: Seq[JsonNode]): Seq[Node] =
    if (changes.isEmpty) Nil
    else <div class="table-responsive">{UIUtils.listingTable[JsonNode](ChangeColumns, change(_), changes.reverse)}</div>

  private def change(record: JsonNode): Seq[Node] = {
    def millis(field: String): Option[Long] = Some(record.path(field)).filter(_.isIntegralNumber).map(_.asLong)
    val parts = Seq("stop", "repartition", "start").flatMap { part =>
      millis(s"${part}_millis").map(time => s"$part ${seconds(time)}")
    }
    val partitions =
      if (record.has("from_partitions"))
        s"${record.path("from_partitions").asInt} -> ${record.path("to_partitions").asInt}"
      else record.path("partitions").asText
    val cells = Seq(
      time(record.path("at").asText),
      record.path("event").asText,
      record.path("batch").asText,
      partitions,
      millis("pause_millis").fold("")(seconds),
      parts.mkString(", "),
      record.path("reason").asText
    )
    Cell.row(ChangeColumns, cells.map(cell => <td>{cell}</td>))
  }

  private def trigger(record: JsonNode): Option[Long] = Some(record.path("trigger_millis").asLong).filter(_ > 0)

  private def time(text: String): String =
    Try(OffsetDateTime.parse(text).toInstant.toEpochMilli).map(UIUtils.formatDate).getOrElse(text)

  /** Spark's own text has no digits after the point from 1 s on. */
  private def seconds(millis: Long): String = f"${millis / 1000.0}%.1f s"

  private def number(value: Long): String = f"$value%,d"
}
