package io.apportion.report

import org.apache.spark.sql.apportion.Redacted
import com.fasterxml.jackson.annotation.JsonProperty
import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.apache.spark.scheduler.SparkListenerEvent
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/**
 * Query on Spark's listener bus, posted before its first stage runs. It has facts that Spark's own events lack.
 *
 * The JSON has these fields:
 *  - `query`: SQL execution id.
 *  - `sql`: text of the query, if it was submitted as text.
 *  - `fingerprint`: identity of the query, which is the same in every run.
 *  - `operators`: operators of the optimized plan, each after its parent. Each has a `depth` in the tree, a `name` and
 *    a `text`. If known, `start` and `stop` are the first and the last character of its place in the text of the query.
 *    The plan of a subquery starts again at depth 0.
 */
final case class QueryEvent(@JsonProperty("query") query: JsonNode) extends SparkListenerEvent

object QueryEvent {
  private val json = new ObjectMapper
  private val MostCharacters = 1 << 20
  private val MostOperators = 5000
  private val MostCharactersOfOperator = 500
  private val MostFields = 25

  def of(id: Long, sql: Option[String], fingerprint: String, operators: Seq[(Int, LogicalPlan)]): QueryEvent = {
    val query = json.createObjectNode().put("query", id).put("fingerprint", fingerprint)
    val shown = sql.map(Redacted(_))
    shown.foreach(text => query.put("sql", text.take(MostCharacters)))
    val written = query.putArray("operators")
    operators.take(MostOperators).foreach { case (depth, operator) =>
      val entry = written
        .addObject()
        .put("depth", depth)
        .put("name", operator.nodeName)
        .put("text", Redacted(operator.simpleString(MostFields)).take(MostCharactersOfOperator))
      val origin = operator.origin
      // Operators of a view have positions in the text of the view. In a redacted text, positions have moved.
      if (origin.sqlText == sql && shown == sql)
        for (start <- origin.startIndex; stop <- origin.stopIndex) entry.put("start", start).put("stop", stop)
    }
    QueryEvent(query)
  }
}
