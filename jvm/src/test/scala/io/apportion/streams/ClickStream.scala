package io.apportion.streams

import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.databind.node.ObjectNode

/** Records of a stream that counts clicks. */
object ClickStream {
  private val mapper = new ObjectMapper

  /** A batch of the query with this id, with other values for some fields. `null` removes a field. */
  def batch(query: String, changes: (String, Any)*): ObjectNode = {
    val json = mapper.createObjectNode
    json.put("stream", "clicks").put("query_id", query).put("run_id", "run-1").put("at", "2026-03-01T10:00:00.500Z")
    json.put("event", "batch").put("batch", 7L).put("policy", "load").put("partitions", 8).put("target", 8)
    json.put("slots", 4).put("batch_millis", 12000L).put("trigger_millis", 30000L).put("input_rows", 90000L)
    json.put("input_rows_per_second", 3000.0).put("processed_rows_per_second", 7500.0).put("backlog_rows", 0L)
    json.put("state_rows", 50000L).put("state_bytes", 5L << 20).put("reason", "8 partitions: the load is in bounds")
    changes.foreach {
      case (name, null)  => json.remove(name)
      case (name, value) => json.set[ObjectNode](name, mapper.valueToTree[ObjectNode](value))
    }
    json
  }

  /** A rescale of the query from 8 to 16 partitions. */
  def rescale(query: String, changes: (String, Any)*): ObjectNode = {
    val fields = Seq(
      "event" -> "rescale",
      "partitions" -> 16,
      "target" -> 16,
      "from_partitions" -> 8,
      "to_partitions" -> 16,
      "stop_millis" -> 700,
      "repartition_millis" -> 5600,
      "start_millis" -> 1900,
      "pause_millis" -> 8200,
      "reason" -> "8 -> 16 partitions: batches took 41 s of a 30 s trigger for 5 minutes"
    )
    batch(query, fields ++ changes: _*)
  }
}
