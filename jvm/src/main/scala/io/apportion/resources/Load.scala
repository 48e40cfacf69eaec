package io.apportion.resources

import scala.collection.concurrent.TrieMap
import scala.collection.mutable

import io.apportion.decision.ResourceRequirement
import io.apportion.resources.deadlines.TaskSpeed
import org.apache.spark.executor.TaskMetrics

/** Tracks the remaining work of running queries from the events of their jobs, stages and tasks. */
private[resources] final class Load {
  import Load._

  private val jobs = TrieMap.empty[Int, Long]
  private val stages = TrieMap.empty[Int, Stage]
  private val begun = mutable.Map.empty[Long, Long]
  private val speeds = mutable.Map.empty[Long, TaskSpeed]
  private val overall = new TaskSpeed

  def jobStarts(query: Long, job: Int, now: Long): Unit = {
    begun.getOrElseUpdate(query, now)
    jobs.update(job, query)
  }

  def jobEnds(job: Int): Unit = jobs.remove(job)

  /** Counts stages when they start, because Spark does not submit stages of a job again that ran before. */
  def stageStarts(query: Long, stage: Int, tasks: Int): Unit = stages.update(stage, new Stage(query, tasks))

  def stageEnds(stage: Int): Unit = stages.remove(stage)

  /** Counts a task that succeeded. */
  def taskEnds(stage: Int, metrics: Option[TaskMetrics]): Unit = for (running <- stages.get(stage)) {
    running.finished += 1
    for (measured <- metrics) {
      val bytes = measured.inputMetrics.bytesRead + measured.shuffleReadMetrics.totalBytesRead
      for (speed <- Seq(speeds.getOrElseUpdate(running.query, new TaskSpeed), overall))
        speed.add(bytes, measured.executorRunTime)
    }
  }

  /** Whether a tracked query has this job. Like [[queryOf]], it can be called without the lock. */
  def hasJob(job: Int): Boolean = jobs.contains(job)

  /** The query of a running stage. */
  def queryOf(stage: Int): Option[Long] = stages.get(stage).map(_.query)

  def queryEnds(query: Long): Unit = {
    begun.remove(query)
    speeds.remove(query)
    jobsOf(query).foreach(job => jobs.remove(job))
    stages.collect { case (id, stage) if stage.query == query => id }.foreach(id => stages.remove(id))
  }

  def jobsOf(query: Long): Seq[Int] = jobs.collect { case (id, `query`) => id }.toSeq

  /** Number of tasks of the query's largest unfinished stage. */
  def tasksOf(query: Long): Int = unfinished(query).map(_.tasks).maxOption.getOrElse(0)

  /** Number of tasks of the query's submitted stages that have not finished. */
  def openTasks(query: Long): Long = unfinished(query).map(stage => (stage.tasks - stage.finished).toLong).sum

  /** Bytes that a slot has read per second in all tracked queries. */
  def speed: Double = overall.bytesPerSecond

  /** Bytes that a slot has read per second, in this query if a task of it has finished, else in all tracked queries. */
  def speedOf(query: Long): Double =
    speeds.get(query).map(_.bytesPerSecond).filter(_ > 0).getOrElse(speed)

  /** The load of a query. Assumes that unfinished tasks read as many bytes as finished tasks on average. */
  def of(query: Long, requirement: ResourceRequirement, slots: Int, now: Long): QueryLoad = {
    val speed = speeds.getOrElse(query, new TaskSpeed)
    QueryLoad(
      requirement,
      slots,
      waitingBytes = (openTasks(query) * speed.meanBytes).toLong,
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
}
