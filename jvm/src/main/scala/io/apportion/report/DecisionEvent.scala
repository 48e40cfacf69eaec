package io.apportion.report

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ArrayNode
import org.apache.spark.scheduler.SparkListenerEvent

/**
 * A decision on Spark's listener bus, which puts it into the event log. Being nothing but JSON, it can be read back by a history
 * server with any version of Apportion; one without Apportion leaves it out.
 *
 * @param decision the columns of [[DecisionRecord.schema]]; `subpartition_bytes`: for each shuffle that is read, the bytes of
 *                 its subpartitions; `operators`: what the stage was planned from, as places in the operators of a [[QueryEvent]]
 */
final case class DecisionEvent(decision: JsonNode) extends SparkListenerEvent

object DecisionEvent {

  def of(record: DecisionRecord, subpartitionBytes: Seq[Array[Long]], operators: Seq[Int]): DecisionEvent = {
    val decision = RowJson.of(record.toRow)
    operators.foreach(decision.withArray[ArrayNode]("operators").add(_))
    val inputs = decision.putArray("subpartition_bytes")
    subpartitionBytes.foreach { bytes =>
      val input = inputs.addArray()
      bytes.foreach(input.add)
    }
    DecisionEvent(decision)
  }
}
