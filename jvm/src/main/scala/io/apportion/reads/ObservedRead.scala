package io.apportion.reads

import io.apportion.decision.ranges.Bytes
import io.apportion.groups.ExchangeGroup
import io.apportion.report.DecisionRecord
import org.apache.spark.sql.execution.{CoalescedPartitionSpec, PartialReducerPartitionSpec}
import org.apache.spark.sql.execution.adaptive.AQEShuffleReadExec

/** Layout in which Spark reads a group of shuffles with `mode=observe`. */
private[apportion] object ObservedRead {

  /**
   * Record of a decision that is not applied, with the tasks that run instead.
   *
   * @param layouts Spark's shuffle reads, by stage id; without one, each task reads one shuffle partition of the stage
   */
  def record(group: ExchangeGroup, decided: DecisionRecord, layouts: Map[Int, AQEShuffleReadExec]): DecisionRecord =
    // The record of an unchanged group already has Spark's layout.
    if (decided.dataVolumePerTask.isEmpty) decided
    else {
      val stored = taskBytes(group, layouts)
      // With volume.measure=estimated, the decision counts row bytes instead of stored bytes.
      val factor = if (group.inputBytes > 0) decided.inputBytes.toDouble / group.inputBytes else 1.0
      val perTask = Bytes.scale(stored, factor)
      decided.observed(perTask.length, Bytes.largest(perTask), Bytes.sum(perTask) / perTask.length.max(1))
    }

  /** Stored bytes that each task reads of the shuffles of a group. */
  def taskBytes(group: ExchangeGroup, layouts: Map[Int, AQEShuffleReadExec]): Array[Long] =
    Bytes.sumEach(group.stages.zip(group.bytes).map { case (stage, bytes) =>
      layouts.get(stage.id).fold(bytes)(taskBytes(_, bytes))
    })

  private def taskBytes(read: AQEShuffleReadExec, bytes: Array[Long]): Array[Long] = {
    lazy val sums = Bytes.prefixSums(bytes)
    read.partitionSpecs.toArray.map {
      case CoalescedPartitionSpec(start, end, size)   => size.getOrElse(sums(end) - sums(start))
      case PartialReducerPartitionSpec(_, _, _, size) => size
      // Local reads of map outputs: Spark does not report the size of each.
      case _ => sums.last / read.partitionSpecs.size
    }
  }
}
