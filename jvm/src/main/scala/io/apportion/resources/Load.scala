package io.apportion.resources

import scala.collection.concurrent.TrieMap
import scala.collection.mutable

import io.apportion.decision.ResourceRequirement
import org.apache.spark.executor.TaskMetrics

/** What queries that run have still to do, as their jobs and tasks begin and end. */
private[resources] final class Load {
  import Load._

  private val jobs = TrieMap.empty[Int, Long]
  private val stages = TrieMap.empty[Int, Stage]
  private val begun = mutable.Map.empty[Long, Long]
  private val speeds = mutable.Map.empty[Long, Speed]

  def jobStarts(query: Long, job: Int, now: Long): Unit = {
    begun.getOrElseUpdate(query, now)
    jobs.update(job, query)
  }

  def jobEnds(job: Int): Unit = jobs.remove(job)

  /** Of a job's stages many may have run before, and are not submitted again. */
  def stageStarts(query: Long, stage: Int, tasks: Int): Unit = stages.update(stage, new Stage(query, tasks))

  def stageEnds(stage: Int): Unit = stages.remove(stage)

  /** Of a task that ended well. */
  def taskEnds(stage: Int, metrics: Option[TaskMetrics]): Unit = for (its <- stages.get(stage)) {
    its.finished += 1
    for (measured <- metrics) {
      val speed = speeds.getOrElseUpdate(its.query, new Speed)
      speed.bytes += measured.inputMetrics.bytesRead + measured.shuffleReadMetrics.totalBytesRead
      speed.tasks += 1
      speed.millis += measured.executorRunTime
    }
  }

  /** Whether a job of a tracked query runs; needs no lock, like [[hasStage]]. */
  def hasJob(job: Int): Boolean = jobs.contains(job)

  def hasStage(stage: Int): Boolean = stages.contains(stage)

  def queryEnds(query: Long): Unit = {
    begun.remove(query)
    speeds.remove(query)
    jobsOf(query).foreach(job => jobs.remove(job))
    stages.collect { case (id, stage) if stage.query == query => id }.foreach(id => stages.remove(id))
  }

  def jobsOf(query: Long): Seq[Int] = jobs.collect { case (id, `query`) => id }.toSeq

  /** Of the largest stage that has not ended. */
  def tasksOf(query: Long): Int = unfinished(query).map(_.tasks).maxOption.getOrElse(0)

  /** Tasks that have not ended are taken for as large as the mean of those that have. */
  def of(query: Long, requirement: ResourceRequirement, slots: Int, now: Long): QueryLoad = {
    val speed = speeds.getOrElse(query, new Speed)
    val waiting = unfinished(query).map(stage => (stage.tasks - stage.finished).toLong).sum
    QueryLoad(
      requirement,
      slots,
      waitingBytes = (waiting * speed.meanBytes).toLong,
      bytesPerSlotSecond = speed.bytesPerSecond,
      runningMillis = begun.get(query).fold(0L)(now - _)
    )
  }

  private def unfinished(query: Long): Iterable[Stage] =
    stages.values.filter(stage => stage.query == query && stage.finished < stage.tasks)
}

private object Load {
  private final class Stage(val query: Long, val tasks: Int) {
    var finished = 0
  }

  /** Of the finished tasks of a query. */
  private final class Speed {
    var bytes = 0L
    var tasks = 0L
    var millis = 0L

    def meanBytes: Double = if (tasks == 0) 0 else bytes.toDouble / tasks
    def bytesPerSecond: Double = if (millis == 0) 0 else bytes * 1000.0 / millis
  }
}
