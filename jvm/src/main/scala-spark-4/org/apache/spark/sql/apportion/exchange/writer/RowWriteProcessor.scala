package org.apache.spark.sql.apportion.exchange.writer

import org.apache.spark.{ShuffleDependency, TaskContext}
import org.apache.spark.scheduler.MapStatus
import org.apache.spark.shuffle.ShuffleWriteProcessor

private[apportion] abstract class RowWriteProcessor extends ShuffleWriteProcessor {
  protected def writeRows(
      rows: Iterator[_],
      dependency: ShuffleDependency[_, _, _],
      mapId: Long,
      context: TaskContext
  ): MapStatus

  override def write(
      rows: Iterator[_],
      dependency: ShuffleDependency[_, _, _],
      mapId: Long,
      mapIndex: Int,
      context: TaskContext
  ): MapStatus = writeRows(rows, dependency, mapId, context)
}
