package io.apportion.reads

import io.apportion.decision.ranges.Bytes
import io.apportion.groups.ExchangeGroup
import io.apportion.report.DecisionRecord
import org.apache.spark.sql.execution.{CoalescedPartitionSpec, PartialReducerPartitionSpec}
import org.apache.spark.sql.execution.adaptive.AQEShuffleReadExec

/** How Spark reads a group of shuffles while Apportion observes. */
private[apportion] object ObservedRead {

  /**
   * The record of a decision that is not applied.
   *
   * @param layouts Spark's reads, by stage id; a stage without one is read one partition per task
   */
  def record(group: ExchangeGroup, decided: DecisionRecord, layouts: Map[Int, AQEShuffleReadExec]): DecisionRecord =
    // A group that is left unchanged has Spark's layout in its record.
    if (decided.dataVolumePerTask.isEmpty) decided
    else {
      val stored = Bytes.sumEach(group.stages.zip(group.bytes).map { case (stage, bytes) =>
        layouts.get(stage.id).fold(bytes)(taskBytes(_, bytes))
      })
      // The decision counts bytes of rows with volume.measure=estimated.
      val factor = if (group.inputBytes > 0) decided.inputBytes.toDouble / group.inputBytes else 1.0
      val perTask = Bytes.scale(stored, factor)
      decided.observed(
        perTask.length,
        Bytes.largest(perTask),
        if (perTask.isEmpty) 0 else Bytes.sum(perTask) / perTask.length
      )
    }

  private def taskBytes(read: AQEShuffleReadExec, bytes: Array[Long]): Array[Long] = {
    lazy val sums = Bytes.prefixSums(bytes)
    read.partitionSpecs.toArray.map {
      case CoalescedPartitionSpec(start, end, size)   => size.getOrElse(sums(end) - sums(start))
      case PartialReducerPartitionSpec(_, _, _, size) => size
      // Map outputs that are read locally: Spark does not say how large each is.
      case _ => sums.last / read.partitionSpecs.size
    }
  }
}
