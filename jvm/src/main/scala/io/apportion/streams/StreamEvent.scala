package io.apportion.streams

import com.fasterxml.jackson.annotation.JsonProperty
import com.fasterxml.jackson.databind.JsonNode
import org.apache.spark.scheduler.SparkListenerEvent

/**
 * Record of a stream on Spark's listener bus, which writes it to the event log. The event is only JSON, so a history
 * server with any version of Apportion can read it. The JSON has the fields of [[StreamRecord.schema]].
 */
final case class StreamEvent(@JsonProperty("stream") stream: JsonNode) extends SparkListenerEvent
