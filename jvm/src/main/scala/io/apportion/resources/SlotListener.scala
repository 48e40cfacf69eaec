package io.apportion.resources

import org.apache.spark.Success
import org.apache.spark.scheduler._
import org.apache.spark.sql.apportion.ShuffleBlocks
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd

/** Tells a coordinator of executors, and of the jobs, stages and tasks of its queries. */
private[resources] final class SlotListener(coordinator: SlotCoordinator, queries: TrackedQueries)
    extends SparkListener {

  override def onExecutorAdded(event: SparkListenerExecutorAdded): Unit = coordinator.slotsMayHaveChanged()

  override def onExecutorRemoved(event: SparkListenerExecutorRemoved): Unit = coordinator.slotsMayHaveChanged()

  override def onJobStart(event: SparkListenerJobStart): Unit =
    for (query <- queries.of(event.properties)) {
      val written = event.stageInfos.flatMap(stage => ShuffleBlocks.writtenBy(stage).map(stage.stageId -> _))
      coordinator.progress(query)(_.jobStarts(event.jobId, written, SlotCoordinator.now()))
    }

  override def onJobEnd(event: SparkListenerJobEnd): Unit =
    for (query <- queries.all) coordinator.progress(query)(_.jobEnds(event.jobId))

  override def onStageSubmitted(event: SparkListenerStageSubmitted): Unit =
    for (query <- queries.of(event.properties)) {
      val stage = event.stageInfo
      queries.addStage(stage.stageId, query)
      coordinator.progress(query)(_.stageStarts(stage.stageId, stage.numTasks, stage.parentIds, SlotCoordinator.now()))
      coordinator.replanSoon(query)
    }

  override def onStageCompleted(event: SparkListenerStageCompleted): Unit =
    for (query <- queries.removeStage(event.stageInfo.stageId)) {
      coordinator.progress(query)(_.stageEnds(event.stageInfo.stageId, SlotCoordinator.now()))
      coordinator.replanSoon(query)
    }

  override def onTaskEnd(event: SparkListenerTaskEnd): Unit =
    if (event.reason == Success)
      for (query <- queries.ofStage(event.stageId))
        coordinator.progress(query) { progress =>
          progress.taskEnds(event.stageId, event.taskInfo.duration)
          for (metrics <- Option(event.taskMetrics)) {
            val bytes = metrics.inputMetrics.bytesRead + metrics.shuffleReadMetrics.totalBytesRead
            for (speed <- Seq(progress.taskSpeed, coordinator.speedOfAll)) speed.add(bytes, metrics.executorRunTime)
          }
        }

  override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
    case end: SparkListenerSQLExecutionEnd if queries.get(end.executionId).isDefined =>
      coordinator.queryEnds(end.executionId, succeeded = end.errorMessage.forall(_.isEmpty))
    case _ =>
  }

  override def onApplicationEnd(event: SparkListenerApplicationEnd): Unit = coordinator.applicationEnds()
}
