package io.apportion.groups

import org.apache.spark.sql.catalyst.plans.logical.statsEstimation.EstimationUtils
import org.apache.spark.sql.execution.adaptive.BroadcastQueryStageExec

/**
 * The bytes that a broadcast really brings to a task. Spark reports the size of the hashed relation in memory, whose smallest
 * array alone has 32 MiB, so rows times row size is used where that is less.
 */
private[apportion] object BroadcastBytes {

  def of(stage: BroadcastQueryStageExec): Long = {
    val reported = stage.getRuntimeStatistics
    val byRows = reported.rowCount.map(_ * EstimationUtils.getSizePerRow(stage.output))
    clamp(byRows.fold(reported.sizeInBytes)(_.min(reported.sizeInBytes)))
  }

  private def clamp(bytes: BigInt): Long = bytes.max(0).min(Long.MaxValue).toLong
}
