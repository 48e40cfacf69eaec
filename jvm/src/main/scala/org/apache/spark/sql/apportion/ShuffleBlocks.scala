package org.apache.spark.sql.apportion

import java.util.{Collections, LinkedHashMap, Map => JMap}

import scala.collection.concurrent.TrieMap

import org.apache.spark.SparkContext
import org.apache.spark.scheduler.{SparkListener, SparkListenerEvent, SparkListenerStageCompleted, StageInfo}
import org.apache.spark.sql.apportion.exchange.AdaptiveExchangeExec
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanHelper, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd

/**
 * Counts the shuffle blocks that stages of queries write: those that adaptive writes count, otherwise map tasks times
 * subpartitions. Spark's own metrics do not include this number.
 */
final class ShuffleBlocks private extends SparkListener with AdaptiveSparkPlanHelper {
  import ShuffleBlocks._

  private val written = newest[(Int, Int)]
  private val subpartitions = newest[Int]
  private val counted = newest[Long]

  /** Blocks that a stage wrote; 0 if the stage writes no shuffle, or its query is still running. */
  def of(stage: Int): Long =
    Option(written.get(stage)).fold(0L) { case (shuffle, mapTasks) =>
      counted.getOrDefault(shuffle, mapTasks.toLong * subpartitions.getOrDefault(shuffle, 0))
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
            for (blocks <- stage.shuffle.metrics.get(AdaptiveExchangeExec.Blocks))
              counted.put(statistics.shuffleId, blocks.value)
          }
      }
    case _ =>
  }
}

object ShuffleBlocks {
  private val MaxKept = 10000
  private val byContext = TrieMap.empty[SparkContext, ShuffleBlocks]

  private def newest[Value]: JMap[Int, Value] = Collections.synchronizedMap(new LinkedHashMap[Int, Value] {
    override def removeEldestEntry(eldest: JMap.Entry[Int, Value]): Boolean = size > MaxKept
  })

  /** Id of the shuffle that a stage writes. */
  def writtenBy(stage: StageInfo): Option[Int] = stage.shuffleDepId

  /** The counter of an application. It counts from the first call on. */
  def in(context: SparkContext): ShuffleBlocks = synchronized {
    byContext.filterInPlace((known, _) => !known.isStopped)
    byContext.getOrElseUpdate(
      context, {
        val blocks = new ShuffleBlocks
        context.addSparkListener(blocks)
        blocks
      }
    )
  }
}
