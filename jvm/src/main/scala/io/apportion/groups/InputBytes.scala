package io.apportion.groups

import io.apportion.decision.ranges.Bytes
import org.apache.spark.sql.catalyst.plans.logical.statsEstimation.EstimationUtils
import org.apache.spark.sql.execution.adaptive.{BroadcastQueryStageExec, ShuffleQueryStageExec}

/** Bytes that finished stages add to the input of tasks. */
private[apportion] object InputBytes {

  /** Bytes that a shuffle stored, which are compressed and encoded. */
  def stored(shuffle: ShuffleQueryStageExec): Long =
    shuffle.mapStats.fold(0L)(stats => Bytes.sum(stats.bytesByPartitionId))

  /**
   * Ratio of the uncompressed row bytes of a shuffle to its stored bytes, from the size that Spark counted while the stage
   * wrote its rows; never below 1.
   */
  def rowSizeRatio(shuffle: ShuffleQueryStageExec): Double = {
    val bytes = stored(shuffle)
    if (bytes == 0) 1 else (shuffle.getRuntimeStatistics.sizeInBytes.toDouble / bytes).max(1)
  }

  /**
   * Bytes that each task reads of a broadcast. Spark reports the size of the hashed relation in memory, and the smallest
   * array of that relation alone has 32 MiB. So the number of rows times the row size is used if it is smaller.
   */
  def ofBroadcast(broadcast: BroadcastQueryStageExec): Long = {
    val reported = broadcast.getRuntimeStatistics
    val byRows = reported.rowCount.map(_ * EstimationUtils.getSizePerRow(broadcast.output))
    clamp(byRows.fold(reported.sizeInBytes)(_.min(reported.sizeInBytes)))
  }

  /** Bytes that broadcasts take up in the memory of an executor. */
  def inMemory(broadcasts: Seq[BroadcastQueryStageExec]): Long =
    clamp(broadcasts.map(_.getRuntimeStatistics.sizeInBytes).sum)

  private def clamp(bytes: BigInt): Long = bytes.max(0).min(Long.MaxValue).toLong
}
