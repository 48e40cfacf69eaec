package io.apportion.groups

import io.apportion.decision.ranges.Bytes
import org.apache.spark.sql.execution.adaptive.ShuffleQueryStageExec

/** How many bytes of rows become of a stored byte, which is compressed and encoded. */
private[apportion] object RowSizeRatio {

  /** What is supposed of files that nobody has read yet. */
  val OfFiles = 4.0

  /** The bytes that a finished stage stored. */
  def stored(stage: ShuffleQueryStageExec): Long = stage.mapStats.fold(0L)(stats => Bytes.sum(stats.bytesByPartitionId))

  /** By what a finished stage has counted of its rows; never below 1. */
  def of(stage: ShuffleQueryStageExec): Double = {
    val bytes = stored(stage)
    if (bytes == 0) 1 else (stage.getRuntimeStatistics.sizeInBytes.toDouble / bytes).max(1)
  }
}
