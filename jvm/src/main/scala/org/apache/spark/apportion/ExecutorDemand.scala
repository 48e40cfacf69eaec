package org.apache.spark.apportion

import org.apache.spark.SparkContext
import org.apache.spark.executor.TaskMetrics
import org.apache.spark.scheduler.{SparkListenerStageCompleted, SparkListenerStageSubmitted, StageInfo}

/**
 * Tells dynamic allocation how many tasks to expect. `ExecutorAllocationManager` (3.5 to 4.2) requests executors for the
 * tasks of submitted stages, within its bounds and at its pace. It learns of one more stage here, which does not run.
 * Its tasks are the expected ones beyond the submitted ones. Their number is negative if fewer slots are enough than
 * there are tasks. No other listener sees the stage.
 *
 * It is in Spark's namespace because the manager and its listener are private to Spark.
 */
final class ExecutorDemand {

  // This object's lock guards the field.
  private var told = 0

  /** Sets the number of expected tasks beyond the submitted ones. */
  def expect(sparkContext: SparkContext, tasks: Int): Unit = synchronized {
    if (tasks != told)
      for (manager <- sparkContext.executorAllocationManager) {
        val stage = expected(tasks)
        if (tasks == 0) manager.listener.onStageCompleted(SparkListenerStageCompleted(stage))
        else manager.listener.onStageSubmitted(SparkListenerStageSubmitted(stage))
        told = tasks
      }
  }

  private def expected(tasks: Int): StageInfo = new StageInfo(
    // No stage of a job has this id.
    stageId = -1,
    attemptId = 0,
    name = "Expected tasks",
    numTasks = tasks,
    rddInfos = Nil,
    parentIds = Nil,
    details = "",
    taskMetrics = TaskMetrics.empty,
    resourceProfileId = org.apache.spark.resource.ResourceProfile.DEFAULT_RESOURCE_PROFILE_ID
  )
}
