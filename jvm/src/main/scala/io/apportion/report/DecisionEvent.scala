package io.apportion.report

import com.fasterxml.jackson.annotation.{JsonAutoDetect, JsonCreator, JsonProperty}
import com.fasterxml.jackson.annotation.JsonAutoDetect.Visibility
import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.{ArrayNode, ObjectNode}
import io.apportion.decision.{Policy, SourceKind}
import io.apportion.decision.ranges.{Bytes, Ranges}
import org.apache.spark.scheduler.SparkListenerEvent
import org.apache.spark.sql.internal.SQLConf

/**
 * Decision on Spark's listener bus, which writes it to the event log. The event is only JSON, so a history server with
 * any version of Apportion can read it. A history server without Apportion ignores it.
 *
 * The JSON has the columns of [[DecisionTable.schema]], and these fields:
 *  - `subpartition_bytes`: for each shuffle that is read, the bytes of its partitions. With more than
 *    [[ShortForm.MostExact]] partitions, these are sums over `subpartition_bytes_width` neighbours each.
 *  - `ranges_text`: the ranges if there are more than [[ShortForm.MostExact]]; `ranges` is empty then.
 *  - `operators`: operators that the stage was planned from, as indexes into the operators of the [[QueryEvent]].
 *  - `source_kinds`: the kind of each entry of `sources` that is not a default, see `SourceKind`.
 *  - `policy`: values that the decision was made with.
 *  - `inputs`: for each shuffle, the other fields of [[ShuffleFields]].
 *  - `scan_metric`: see [[ReportedDecision]].
 *
 * The first listener that reads the JSON makes it, and not the thread that plans the query.
 */
@JsonAutoDetect(fieldVisibility = Visibility.NONE, getterVisibility = Visibility.NONE)
final class DecisionEvent private (make: () => JsonNode) extends SparkListenerEvent {
  private lazy val json = make()

  @JsonCreator
  def this(@JsonProperty("decision") decision: JsonNode) = this(() => decision)

  @JsonProperty("decision")
  def decision: JsonNode = json
}

object DecisionEvent {

  def unapply(event: DecisionEvent): Some[JsonNode] = Some(event.decision)

  def of(decision: ReportedDecision, shuffles: Seq[ShuffleFields], operators: Seq[Int]): DecisionEvent = {
    // Listeners have no session.
    val zone = SQLConf.get.sessionLocalTimeZone
    // An event in a queue must not keep the plan.
    val withoutPlan = decision.copy(group = None)
    new DecisionEvent(() => json(withoutPlan, shuffles, operators, zone))
  }

  private def json(
      reported: ReportedDecision,
      shuffles: Seq[ShuffleFields],
      operators: Seq[Int],
      zone: String
  ): JsonNode = {
    val record = reported.record
    val isLong = record.ranges.size > ShortForm.MostExact
    val decision = RowJson.of(DecisionTable.row(if (isLong) record.copy(ranges = Ranges.none) else record), zone)
    if (isLong) decision.put("ranges_text", ShortForm.text(record.ranges))
    operators.foreach(decision.withArray[ArrayNode]("operators").add(_))
    val width = ShortForm.width(shuffles.map(_.bytes.length).maxOption.getOrElse(0))
    if (width > 1) decision.put("subpartition_bytes_width", width)
    val bytes = decision.putArray("subpartition_bytes")
    val inputs = decision.putArray("inputs")
    shuffles.foreach { shuffle =>
      val sums = bytes.addArray()
      Bytes.sumRuns(shuffle.bytes, width).foreach(sums.add)
      put(inputs.addObject(), shuffle)
    }
    reported.policy.foreach { policy =>
      val kinds = decision.putObject("source_kinds")
      // Defaults are left out, because most settings have them and logs are large.
      for ((setting, source) <- policy.setBy if source.kind != SourceKind.Default) kinds.put(setting, source.kind.name)
      put(decision.putObject("policy"), policy)
    }
    reported.scanMetric.foreach(decision.put("scan_metric", _))
    decision
  }

  private def put(json: ObjectNode, shuffle: ShuffleFields): Unit = {
    shuffle.exchangeMetric.foreach(json.put("exchange_metric", _))
    json.put("range_partitioned", shuffle.rangePartitioned).put("splittable", shuffle.notSplit.isEmpty)
    shuffle.notSplit.foreach(json.put("not_split", _))
    if (!shuffle.held.isNone) {
      val held = json.putObject("held").put("per_byte", shuffle.held.perByte)
      shuffle.held.arrays.foreach(held.withArray[ArrayNode]("arrays").add(_))
    }
    shuffle.setBy.foreach(json.put("partitions_set_by", _))
    shuffle.written.foreach { written =>
      written.tree.groups.foreach(json.withArray[ArrayNode]("groups").add(_))
      written.tree.byLevel(written.blockBytes).foreach(json.withArray[ArrayNode]("bytes_by_level").add(_))
    }
  }

  private def put(json: ObjectNode, policy: Policy): Unit = {
    json
      .put("data_volume_per_task", policy.dataVolumePerTask)
      .put("broadcast_ratio", policy.broadcastRatio)
      .put("min_parallelism", policy.minParallelism)
      .put("max_parallelism", policy.maxParallelism)
      .put("min_task_volume", policy.minTaskVolume)
      .put("ranges", if (policy.balanced) "balanced" else "even")
      .put("rounding", policy.rounding.name)
    policy.parallelism.foreach(json.put("parallelism", _))
    policy.taskMemory.foreach(json.put("task_memory", _))
  }
}
