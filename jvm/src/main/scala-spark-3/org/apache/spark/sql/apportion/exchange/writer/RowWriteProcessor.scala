package org.apache.spark.sql.apportion.exchange.writer

import org.apache.spark.{Partition, ShuffleDependency, TaskContext}
import org.apache.spark.rdd.RDD
import org.apache.spark.scheduler.MapStatus
import org.apache.spark.shuffle.ShuffleWriteProcessor

/** Before Spark 4, a map task computes its rows in the processor. */
private[apportion] abstract class RowWriteProcessor extends ShuffleWriteProcessor {
  protected def writeRows(
      rows: Iterator[_],
      dependency: ShuffleDependency[_, _, _],
      mapId: Long,
      context: TaskContext
  ): MapStatus

  override def write(
      rdd: RDD[_],
      dependency: ShuffleDependency[_, _, _],
      mapId: Long,
      context: TaskContext,
      partition: Partition
  ): MapStatus = writeRows(rdd.iterator(partition, context), dependency, mapId, context)
}
