package io.apportion.writes

import java.lang.ref.WeakReference

import scala.collection.mutable

import io.apportion.history.StageRun
import io.apportion.rules.{CurrentQuery, LostQueries}
import io.apportion.util.PerApplication
import io.apportion.writes.statements.WriteEntries
import org.apache.spark.scheduler._
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.SQLExecution
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd

/** Adds the bytes that a statement wrote to the [[EarlierWrites]], when the stage that writes has ended. */
private[writes] final class WriteListener(lost: LostQueries = new LostQueries) extends SparkListener {
  import WriteListener._

  private val waiting = mutable.Map.empty[Long, Watched]

  /** Query of each stage that may write, by the id of the stage. */
  private val queries = mutable.Map.empty[Int, Long]

  def watch(query: Long, watched: Watched): Unit = synchronized {
    lost.among(waiting.keySet ++ queries.values).foreach(forget)
    waiting.update(query, watched)
  }

  def waitingQueries: Set[Long] = synchronized(waiting.keySet.toSet)

  private def forget(query: Long): Unit = {
    waiting -= query
    queries.filterInPlace((_, other) => other != query)
  }

  override def onJobStart(event: SparkListenerJobStart): Unit = synchronized {
    for {
      properties <- Option(event.properties)
      id <- Option(properties.getProperty(SQLExecution.EXECUTION_ID_KEY)) if waiting.contains(id.toLong)
    } event.stageIds.foreach(queries.update(_, id.toLong))
  }

  override def onStageCompleted(event: SparkListenerStageCompleted): Unit = {
    val stage = event.stageInfo
    for {
      metrics <- Option(stage.taskMetrics).map(_.outputMetrics)
      if stage.failureReason.isEmpty && metrics.bytesWritten > 0 && metrics.recordsWritten > 0
      watched <- synchronized(queries.get(stage.stageId).flatMap(waiting.remove))
      session <- Option(watched.session.get) if !session.sparkContext.isStopped
    } new EarlierWrites(session).add(
      watched.entries,
      StageRun(watched.read, stage.numTasks, written = metrics.bytesWritten, rows = metrics.recordsWritten)
    )
  }

  override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
    case end: SparkListenerSQLExecutionEnd => synchronized(forget(end.executionId))
    case _                                 =>
  }
}

private[writes] object WriteListener {

  /** The listener of an application. The first use adds it. */
  private val listeners = new PerApplication(sparkContext => {
    val listener = new WriteListener
    sparkContext.addSparkListener(listener)
    listener
  })

  /**
   * A statement whose files are not written yet.
   *
   * @param read bytes that the tasks that write will read
   */
  final case class Watched(session: WeakReference[SparkSession], entries: WriteEntries, read: Long)

  /** Adds the run of the query in this thread to the entries when its files are written. */
  def watch(session: SparkSession, entries: WriteEntries, read: => Long): Unit =
    for (query <- CurrentQuery.current(session))
      listeners.of(session.sparkContext).watch(query, Watched(new WeakReference(session), entries, read))
}
