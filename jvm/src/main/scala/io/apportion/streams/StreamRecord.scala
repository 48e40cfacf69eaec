package io.apportion.streams

import java.sql.Timestamp
import java.time.OffsetDateTime

import scala.jdk.CollectionConverters._
import scala.util.Try

import com.fasterxml.jackson.core.JsonProcessingException
import com.fasterxml.jackson.core.json.JsonReadFeature
import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.json.JsonMapper
import com.fasterxml.jackson.databind.node.ObjectNode
import io.apportion.util.TableColumns.{column => optional}
import org.apache.spark.sql.Row
import org.apache.spark.sql.types._

/**
 * A batch of a streaming query that the Python package controls, or a change of its state partitions.
 *
 * @param json the fields of [[StreamRecord.schema]], without those that are null
 */
final case class StreamRecord(json: ObjectNode) {

  /** Spark's id of the streaming query, which stays the same over restarts. */
  def query: String = json.path("query_id").asText

  def event: String = json.path("event").asText

  /** The record as a row of [[StreamRecord.schema]]. */
  def toRow: Row =
    Row.fromSeq(StreamRecord.schema.map(column => StreamRecord.value(column, json.path(column.name)).orNull))
}

object StreamRecord {
  val Batch = "batch"
  private val Events = Seq(Batch, "rescale", "failure", "ended")

  // Python writes numbers such as NaN, and the error should name their field.
  private val mapper = JsonMapper.builder().enable(JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS).build()

  private def required(name: String, dataType: DataType, comment: String): StructField =
    optional(name, dataType, comment).copy(nullable = false)

  /** The columns of `apportion_streams()`, with their meaning as comments. */
  val schema: StructType = StructType(
    Seq(
      required(
        "stream",
        StringType,
        "name of the query; without one, the last folder of its sink or checkpoint, and the start of its id"
      ),
      required("query_id", StringType, "Spark's id of the streaming query, which stays the same over restarts"),
      required("run_id", StringType, "Spark's id of this run of the query"),
      required("at", TimestampType, "time of the record"),
      required(
        "event",
        StringType,
        "batch: a batch ended; rescale: the first batch after a rescale was committed; failure: a rescale failed, and " +
          "the query runs with the old number; ended: the query ended"
      ),
      required("batch", LongType, "id of the batch"),
      required("policy", StringType, "fixed, load, lag, or the class name of a policy of your own"),
      required("partitions", IntegerType, "state partitions"),
      required(
        "target",
        IntegerType,
        "state partitions that the policy requires; equal to `partitions` if no change is needed"
      ),
      required("slots", IntegerType, "task slots of the application"),
      required("batch_millis", LongType, "duration of the batch"),
      optional(
        "trigger_millis",
        LongType,
        "interval of the trigger; null if each batch starts as soon as the previous one has ended"
      ),
      required("input_rows", LongType, "rows that the batch read"),
      required("input_rows_per_second", DoubleType, "rows that arrived per second"),
      required("processed_rows_per_second", DoubleType, "rows that the batch processed per second"),
      optional(
        "backlog_rows",
        LongType,
        "rows of the sources that no batch has read; null if the sources do not report them"
      ),
      required("state_rows", LongType, "rows in the state of all operators"),
      required("state_bytes", LongType, "memory that the state of all operators uses"),
      optional(
        "batch_bytes",
        LongType,
        "bytes that the batch shuffled to the state partitions; null if they are not known"
      ),
      optional(
        "largest_share",
        DoubleType,
        "share of `batch_bytes` in the largest partition, from 0 to 1; null if it is not known"
      ),
      optional("from_partitions", IntegerType, "state partitions before a rescale; null for other events"),
      optional("to_partitions", IntegerType, "state partitions after a rescale; null for other events"),
      optional("stop_millis", LongType, "time to stop the query at the end of a batch; null unless it was rescaled"),
      optional(
        "repartition_millis",
        LongType,
        "time to repartition the checkpoint; null unless the query was rescaled"
      ),
      optional(
        "start_millis",
        LongType,
        "time from the start of the query to its first committed batch; null unless it was rescaled"
      ),
      optional(
        "pause_millis",
        LongType,
        "time from the request to stop to the first committed batch; null unless the query was rescaled"
      ),
      required("reason", StringType, "reason for the target, or for the change")
    )
  )

  /** Reads a record. Throws [[IllegalArgumentException]] with the name of the first wrong field. */
  def parse(text: String): StreamRecord = {
    val json =
      try mapper.readTree(text)
      catch {
        case wrong: JsonProcessingException =>
          throw new IllegalArgumentException(s"The record of a stream is not JSON: ${wrong.getOriginalMessage}")
      }
    require(json.isObject, s"The record of a stream must be a JSON object, but it is ${json.getNodeType}")
    json.fieldNames.asScala.find(!schema.fieldNames.contains(_)).foreach { name =>
      refuse(name, "is unknown", s"one of ${schema.fieldNames.mkString(", ")}")
    }
    val known = mapper.createObjectNode
    schema.foreach { column =>
      val field = json.path(column.name)
      if (!field.isMissingNode && !field.isNull) {
        if (value(column, field).isEmpty) refuse(column.name, s"is $field", allowed(column))
        known.set[JsonNode](column.name, field)
      } else if (!column.nullable) refuse(column.name, "is missing", allowed(column))
    }
    if (!Events.contains(known.path("event").asText))
      refuse("event", s"is ${known.path("event")}", Events.mkString(", "))
    StreamRecord(known)
  }

  private def refuse(name: String, wrong: String, allowed: String): Nothing =
    throw new IllegalArgumentException(s"The field $name of the record of a stream $wrong. Allowed: $allowed")

  private def allowed(column: StructField): String = column.dataType match {
    case StringType    => "a text"
    case TimestampType => "a time in ISO 8601 with an offset, such as 2025-01-31T12:00:00Z"
    case IntegerType   => s"a whole number of at most ${Int.MaxValue}"
    case LongType      => s"a whole number of at most ${Long.MaxValue}"
    case _             => "a finite number"
  }

  /** The value of a column; `None` if the field is missing or has another type. */
  private def value(column: StructField, field: JsonNode): Option[Any] = column.dataType match {
    case StringType if field.isTextual    => Some(field.asText)
    case TimestampType if field.isTextual =>
      Try(Timestamp.from(OffsetDateTime.parse(field.asText).toInstant)).toOption
    case IntegerType if field.isIntegralNumber && field.canConvertToInt            => Some(field.asInt)
    case LongType if field.isIntegralNumber && field.canConvertToLong              => Some(field.asLong)
    case DoubleType if field.isNumber && java.lang.Double.isFinite(field.asDouble) => Some(field.asDouble)
    case _                                                                         => None
  }
}
