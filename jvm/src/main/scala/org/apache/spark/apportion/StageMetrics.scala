package org.apache.spark.apportion

import org.apache.spark.sql.apportion.ShuffleBlocks
import org.apache.spark.SparkContext
import org.apache.spark.status.api.v1.StageStatus

/**
 * What the tasks of one finished stage did.
 *
 * @param largestTaskBytes shuffle bytes that its largest task read
 * @param blocksWritten    blocks of the shuffle that it wrote: its tasks times subpartitions; counted from [[StageMetrics.watch]] on
 * @param taskMillis       run time of all its tasks
 */
final case class StageMetrics(
    stage: Int,
    name: String,
    tasks: Int,
    shuffleReadBytes: Long,
    largestTaskBytes: Long,
    blocksWritten: Long,
    taskMillis: Long
)

/** In Spark's namespace because the status store is private to it. */
object StageMetrics {
  private val ListenerTimeoutMillis = 30000L

  /** Counts the blocks of stages that run after this. */
  def watch(sparkContext: SparkContext): Unit = ShuffleBlocks.in(sparkContext)

  /** The finished stages of the jobs of one job group, by stage id; those that were skipped or failed are left out. */
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
        taskMillis = attempt.executorRunTime
      )
    }
  }
}
