package org.apache.spark.apportion

import scala.collection.immutable.ListMap

import org.apache.spark.sql.apportion.ShuffleBlocks
import org.apache.spark.SparkContext
import org.apache.spark.status.api.v1.StageStatus

/** It is in Spark's namespace because the status store is private to Spark. */
object StageMetrics {
  private val ListenerTimeoutMillis = 30000L

  /**
   * Metrics of the finished stages of the jobs of one job group, by stage id, without skipped and failed stages.
   *
   *  - `largestTaskBytes`: shuffle bytes that the largest task read
   *  - `blocksWritten`: shuffle blocks that the stage wrote: tasks times subpartitions; counted since the first call of
   *    [[ShuffleBlocks.in]]
   *  - `taskMillis`: total run time of the tasks
   *  - `spilledBytes`: bytes that the tasks spilled to disk
   */
  def ofJobGroup(sparkContext: SparkContext, jobGroup: String): Seq[ListMap[String, Any]] = {
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
      ListMap[String, Any](
        "stage" -> id,
        "name" -> attempt.name,
        "tasks" -> attempt.numCompleteTasks,
        "readsShuffle" -> (reads.sum > 0),
        "shuffleReadBytes" -> reads.sum,
        "largestTaskBytes" -> reads.maxOption.getOrElse(0L),
        "blocksWritten" -> ShuffleBlocks.in(sparkContext).of(id),
        "taskMillis" -> attempt.executorRunTime,
        "spilledBytes" -> attempt.diskBytesSpilled
      )
    }
  }
}
