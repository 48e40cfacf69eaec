package io.apportion.report

import io.apportion.decision.ranges.Ranges
import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ArrayNode
import org.apache.spark.scheduler.SparkListenerEvent

/**
 * A decision on Spark's listener bus, which puts it into the event log. Being nothing but JSON, it can be read back by a history
 * server with any version of Apportion; one without Apportion leaves it out.
 *
 * @param decision the columns of [[DecisionRecord.schema]]; `subpartition_bytes`: for each shuffle that is read, the bytes of
 *                 its subpartitions; `operators`: what the stage was planned from, as places in the operators of a [[QueryEvent]].
 *                 Above [[ShortForm.MostExact]] subpartitions the bytes are sums over `subpartition_bytes_width` neighbours each, and
 *                 above as many ranges `ranges` is empty and `ranges_text` has them
 */
final case class DecisionEvent(decision: JsonNode) extends SparkListenerEvent

object DecisionEvent {

  def of(record: DecisionRecord, subpartitionBytes: Seq[Array[Long]], operators: Seq[Int]): DecisionEvent = {
    val isLong = record.ranges.size > ShortForm.MostExact
    val decision = RowJson.of((if (isLong) record.copy(ranges = Ranges.none) else record).toRow)
    if (isLong) decision.put("ranges_text", ShortForm.text(record.ranges))
    operators.foreach(decision.withArray[ArrayNode]("operators").add(_))
    val width = ShortForm.width(subpartitionBytes.map(_.length).maxOption.getOrElse(0))
    if (width > 1) decision.put("subpartition_bytes_width", width)
    val inputs = decision.putArray("subpartition_bytes")
    subpartitionBytes.foreach { bytes =>
      val input = inputs.addArray()
      ShortForm.sums(bytes, width).foreach(input.add)
    }
    DecisionEvent(decision)
  }
}
