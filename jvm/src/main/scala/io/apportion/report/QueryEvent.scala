package io.apportion.report

import scala.util.control.NonFatal

import com.fasterxml.jackson.annotation.{JsonAutoDetect, JsonCreator, JsonProperty}
import com.fasterxml.jackson.annotation.JsonAutoDetect.Visibility
import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.JsonNodeFactory
import org.apache.spark.scheduler.SparkListenerEvent
import org.apache.spark.sql.apportion.Redaction
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/**
 * Query on Spark's listener bus, posted before its first stage runs. It has facts that Spark's own events lack. The first
 * listener that reads the JSON makes it, as for a [[DecisionEvent]].
 *
 * The JSON has these fields:
 *  - `query`: SQL execution id.
 *  - `sql`: text of the query, if it was submitted as text.
 *  - `fingerprint`: identity of the query, which is the same in every run.
 *  - `operators`: operators of the optimized plan, each after its parent. Each has a `depth` in the tree, a `name` and
 *    a `text`. If known, `start` and `stop` are the first and the last character of its place in the text of the query.
 *    The plan of a subquery starts again at depth 0.
 */
@JsonAutoDetect(fieldVisibility = Visibility.NONE, getterVisibility = Visibility.NONE)
final class QueryEvent private (make: () => JsonNode) extends SparkListenerEvent {
  private lazy val json = make()

  @JsonCreator
  def this(@JsonProperty("query") query: JsonNode) = this(() => query)

  @JsonProperty("query")
  def query: JsonNode = json
}

object QueryEvent {
  private val nodes = JsonNodeFactory.instance
  private val MostCharacters = 1 << 20
  private val MostOperators = 5000
  private val MostCharactersOfOperator = 500
  private val MostFields = 25

  def unapply(event: QueryEvent): Some[JsonNode] = Some(event.query)

  def of(id: Long, sql: Option[String], fingerprint: => String, operators: Seq[(Int, LogicalPlan)]): QueryEvent = {
    // Listeners have no session.
    val redacted = Redaction.ofSession
    new QueryEvent(() => {
      val query = nodes.objectNode().put("query", id)
      val shown = sql.map(redacted)
      shown.foreach(text => query.put("sql", text.take(MostCharacters)))
      // An error would stop the application: deep queries are planned in threads with more stack than this one.
      try {
        query.put("fingerprint", fingerprint)
        val written = query.putArray("operators")
        operators.take(MostOperators).foreach { case (depth, operator) =>
          val (name, text) =
            (operator.nodeName, redacted(operator.simpleString(MostFields)).take(MostCharactersOfOperator))
          val entry = written.addObject().put("depth", depth).put("name", name).put("text", text)
          val origin = operator.origin
          // Operators of a view have positions in the text of the view. In a redacted text, positions have moved.
          if (origin.sqlText == sql && shown == sql)
            for (start <- origin.startIndex; stop <- origin.stopIndex) entry.put("start", start).put("stop", stop)
        }
      } catch { case NonFatal(_) | _: StackOverflowError => }
      query
    })
  }
}
