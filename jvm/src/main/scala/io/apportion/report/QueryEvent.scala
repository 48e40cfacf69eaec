package io.apportion.report

import org.apache.spark.sql.apportion.Redacted
import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.apache.spark.scheduler.SparkListenerEvent
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/**
 * A query on Spark's listener bus, posted before its first stage runs: what Spark's own events do not tell of it.
 *
 * @param query `query`: its SQL execution id; `sql`: the text, if it was one; `operators`: those of the optimized plan, each after
 *              its parent, with `depth` in the tree, `name`, `text`, and `start` and `stop`: where in the text it comes from, the last
 *              character included. A plan of a subquery begins again at depth 0.
 */
final case class QueryEvent(query: JsonNode) extends SparkListenerEvent

object QueryEvent {
  private val json = new ObjectMapper
  private val MostCharacters = 1 << 20
  private val MostOperators = 5000
  private val MostCharactersOfOperator = 500
  private val MostFields = 25

  def of(id: Long, sql: Option[String], operators: Seq[(Int, LogicalPlan)]): QueryEvent = {
    val query = json.createObjectNode().put("query", id)
    val shown = sql.map(Redacted(_))
    shown.foreach(text => query.put("sql", text.take(MostCharacters)))
    val written = query.putArray("operators")
    operators.take(MostOperators).foreach { case (depth, operator) =>
      val one = written
        .addObject()
        .put("depth", depth)
        .put("name", operator.nodeName)
        .put("text", Redacted(operator.simpleString(MostFields)).take(MostCharactersOfOperator))
      val origin = operator.origin
      // What comes from the text of a view has its place there, and nothing is where it was in a text with parts replaced.
      if (origin.sqlText == sql && shown == sql)
        for (start <- origin.startIndex; stop <- origin.stopIndex) one.put("start", start).put("stop", stop)
    }
    QueryEvent(query)
  }
}
