package io.apportion.groups

import org.apache.spark.sql.catalyst.plans.logical.statsEstimation.EstimationUtils
import org.apache.spark.sql.execution.adaptive.BroadcastQueryStageExec

/**
 * Bytes that a broadcast adds to the input of each task. Spark reports the size of the hashed relation in memory, and
 * the smallest array of that relation alone has 32 MiB. So the number of rows times the row size is used if it is
 * smaller.
 */
private[apportion] object BroadcastBytes {

  def of(stage: BroadcastQueryStageExec): Long = {
    val reported = stage.getRuntimeStatistics
    val byRows = reported.rowCount.map(_ * EstimationUtils.getSizePerRow(stage.output))
    clamp(byRows.fold(reported.sizeInBytes)(_.min(reported.sizeInBytes)))
  }

  /** Bytes that broadcasts take up in the memory of an executor. */
  def inMemory(stages: Seq[BroadcastQueryStageExec]): Long =
    clamp(stages.map(_.getRuntimeStatistics.sizeInBytes).sum)

  private def clamp(bytes: BigInt): Long = bytes.max(0).min(Long.MaxValue).toLong
}
