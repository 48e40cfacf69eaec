package org.apache.spark.apportion

import org.apache.spark.sql.apportion.ShuffleBlocks
import org.apache.spark.SparkContext
import org.apache.spark.status.api.v1.StageStatus

/**
 * Metrics of one finished stage.
 *
 * @param largestTaskBytes shuffle bytes that the largest task read
 * @param blocksWritten    shuffle blocks that the stage wrote: tasks times subpartitions; counted since
 *                         [[StageMetrics.watch]]
 * @param taskMillis       total run time of the tasks
 * @param spilledBytes     bytes that the tasks spilled to disk
 */
final case class StageMetrics(
    stage: Int,
    name: String,
    tasks: Int,
    shuffleReadBytes: Long,
    largestTaskBytes: Long,
    blocksWritten: Long,
    taskMillis: Long,
    spilledBytes: Long
)

/** It is in Spark's namespace because the status store is private to Spark. */
object StageMetrics {
  private val ListenerTimeoutMillis = 30000L

  /** Counts the blocks of stages from now on. */
  def watch(sparkContext: SparkContext): Unit = ShuffleBlocks.in(sparkContext)

  /** Finished stages of the jobs of one job group, by stage id, without skipped and failed stages. */
  def ofJobGroup(sparkContext: SparkContext, jobGroup: String): Seq[StageMetrics] = {
    sparkContext.listenerBus.waitUntilEmpty(ListenerTimeoutMillis)
    val store = sparkContext.statusStore
    val stageIds = store.jobsList(null).filter(_.jobGroup.contains(jobGroup)).flatMap(_.stageIds).distinct.sorted
    for {
      id <- stageIds
      attempt <- store.asOption(store.lastStageAttempt(id)).toSeq if attempt.status == StageStatus.COMPLETE
    } yield {
      val reads = store
        .taskList(id, attempt.attemptId, attempt.numTasks)
        .flatMap(_.taskMetrics)
        .map(metrics => metrics.shuffleReadMetrics.remoteBytesRead + metrics.shuffleReadMetrics.localBytesRead)
      StageMetrics(
        stage = id,
        name = attempt.name,
        tasks = attempt.numCompleteTasks,
        shuffleReadBytes = reads.sum,
        largestTaskBytes = reads.maxOption.getOrElse(0L),
        blocksWritten = ShuffleBlocks.in(sparkContext).of(id),
        taskMillis = attempt.executorRunTime,
        spilledBytes = attempt.diskBytesSpilled
      )
    }
  }
}
