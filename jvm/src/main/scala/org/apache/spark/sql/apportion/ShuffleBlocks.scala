package org.apache.spark.sql.apportion

import io.apportion.util.{BoundedMap, PerApplication}
import org.apache.spark.SparkContext
import org.apache.spark.scheduler.{SparkListener, SparkListenerEvent, SparkListenerStageCompleted, StageInfo}
import org.apache.spark.sql.apportion.exchange.TreeStatistics
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanHelper, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd

/**
 * Counts the shuffle blocks that stages of queries write: those that adaptive writes count, otherwise map tasks times
 * subpartitions. Spark's own metrics do not include this number.
 */
final class ShuffleBlocks private extends SparkListener with AdaptiveSparkPlanHelper {
  import ShuffleBlocks._

  private val written = new BoundedMap[Int, (Int, Int)](MaxKept)
  private val subpartitions = new BoundedMap[Int, Int](MaxKept)
  private val counted = new BoundedMap[Int, Long](MaxKept)

  /** Blocks that a stage wrote; 0 if the stage writes no shuffle, or its query is still running. */
  def of(stage: Int): Long =
    written.get(stage).fold(0L) { case (shuffle, mapTasks) =>
      counted.get(shuffle).getOrElse(mapTasks.toLong * subpartitions.get(shuffle).getOrElse(0))
    }

  override def onStageCompleted(event: SparkListenerStageCompleted): Unit = {
    val stage = event.stageInfo
    writtenBy(stage).foreach(shuffle => written.put(stage.stageId, (shuffle, stage.numTasks)))
  }

  override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
    case end: SparkListenerSQLExecutionEnd if end.qe != null =>
      collectWithSubqueries(end.qe.executedPlan) {
        case stage: ShuffleQueryStageExec if stage.isMaterialized =>
          stage.mapStats.foreach { statistics =>
            subpartitions.put(statistics.shuffleId, statistics.bytesByPartitionId.length)
            for (blocks <- stage.shuffle.metrics.get(TreeStatistics.BlocksMetric))
              counted.put(statistics.shuffleId, blocks.value)
          }
      }
    case _ =>
  }
}

object ShuffleBlocks {
  private val MaxKept = 10000

  /** The counter of an application. The first use adds it. */
  private val counters = new PerApplication(sparkContext => {
    val blocks = new ShuffleBlocks
    sparkContext.addSparkListener(blocks)
    blocks
  })

  /** Id of the shuffle that a stage writes. */
  def writtenBy(stage: StageInfo): Option[Int] = stage.shuffleDepId

  /** The counter of an application. It counts from the first call on. */
  def in(context: SparkContext): ShuffleBlocks = counters.of(context)
}
