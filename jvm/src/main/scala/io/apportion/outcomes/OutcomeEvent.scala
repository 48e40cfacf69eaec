package io.apportion.outcomes

import com.fasterxml.jackson.annotation.JsonProperty
import com.fasterxml.jackson.databind.JsonNode
import io.apportion.report.{Outcome, RowJson}
import org.apache.spark.scheduler.SparkListenerEvent

/**
 * Outcome of a decision on Spark's listener bus, posted when its stage has ended. The JSON has the fields of
 * [[Outcome.schema]], and `query` and `group`, which identify the decision.
 */
final case class OutcomeEvent(@JsonProperty("outcome") outcome: JsonNode) extends SparkListenerEvent

object OutcomeEvent {
  def of(query: Long, group: Int, outcome: Outcome): OutcomeEvent =
    OutcomeEvent(RowJson.of(outcome.toRow).put("query", query).put("group", group))
}
