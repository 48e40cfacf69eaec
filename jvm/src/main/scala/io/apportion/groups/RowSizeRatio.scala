package io.apportion.groups

import io.apportion.decision.ranges.Bytes
import org.apache.spark.sql.execution.adaptive.ShuffleQueryStageExec

/** Ratio of uncompressed row bytes to stored shuffle bytes, which are compressed and encoded. */
private[apportion] object RowSizeRatio {

  /** Bytes that a finished stage stored. */
  def stored(stage: ShuffleQueryStageExec): Long = stage.mapStats.fold(0L)(stats => Bytes.sum(stats.bytesByPartitionId))

  /** Ratio of a finished stage, from the size that Spark counted while the stage wrote its rows; never below 1. */
  def of(stage: ShuffleQueryStageExec): Double = {
    val bytes = stored(stage)
    if (bytes == 0) 1 else (stage.getRuntimeStatistics.sizeInBytes.toDouble / bytes).max(1)
  }
}
