package org.apache.spark.apportion

import java.util.concurrent.TimeUnit

import scala.concurrent.ExecutionContext
import scala.util.{Failure, Success, Try}

import org.apache.spark.{Partition, SparkContext, SparkException, TaskContext}
import org.apache.spark.rdd.RDD
import org.apache.spark.scheduler.JobWaiter
import org.apache.spark.sql.execution.SQLExecution
import org.apache.spark.util.Utils
import org.slf4j.LoggerFactory

/**
 * A Spark job without running tasks, for a query that waits. Spark can then cancel the query by job group, by tag, or
 * with all jobs: DAGScheduler (3.5 to 4.2) cancels only active jobs and running stages, and posts no event.
 *
 * The job is a barrier stage with more tasks than slots. TaskSchedulerImpl.resourceOffers holds it back without
 * occupying a slot. The job has the job group and the tags of the thread that creates it. It does not belong to the
 * thread's SQL execution, so that the query's page in the UI does not list a cancelled job. Not thread-safe.
 *
 * It is in Spark's namespace because DAGScheduler and barrier stages are private to Spark.
 */
final class WaitingJob(sparkContext: SparkContext, description: String) {
  import WaitingJob._

  private val properties = Utils.cloneProperties(sparkContext.getLocalProperties)
  properties.remove(SQLExecution.EXECUTION_ID_KEY)
  properties.setProperty(SparkContext.SPARK_JOB_DESCRIPTION, description)

  private var notBefore = System.nanoTime()
  private var current = Option.empty[JobWaiter[Unit]]

  /** Submits the job if it is not running. Calls `ended` in another thread when the job ends. */
  def keepRunning(ended: () => Unit): Unit = outcome match {
    case None if current.isDefined                                 => // It is running.
    case None | Some(Success(_)) if System.nanoTime() >= notBefore => submit(ended)
    case _ => // It just ran because executors arrived, it was cancelled, or its tasks cannot run on this cluster.
  }

  def isCancelled: Boolean = cancellation.isDefined

  /** Throws the error that the cancelled job ended with. */
  def throwIfCancelled(): Unit = cancellation.foreach(failure => throw failure)

  def end(): Unit =
    for (job <- current if !job.jobFinished && !sparkContext.isStopped)
      sparkContext.cancelJob(job.jobId, "because the query no longer waits for task slots")

  /** How the job ended; `None` while it runs. */
  private def outcome: Option[Try[Unit]] = current.flatMap(_.completionFuture.value)

  private def cancellation: Option[Throwable] = outcome.collect {
    case Failure(failure) if isCancellation(failure) => failure
  }

  private def submit(ended: () => Unit): Unit = {
    notBefore = System.nanoTime() + PauseNanos
    val tasks = new Held(sparkContext, tasksAbove(Cluster.slots(sparkContext), Cluster.isDynamic(sparkContext)))
    val waiter = sparkContext.dagScheduler.submitJob[Unit, Unit](
      tasks,
      readNothing,
      tasks.partitions.indices,
      sparkContext.getCallSite(),
      (_, _) => (),
      properties
    )
    current = Some(waiter)
    waiter.completionFuture.onComplete { result =>
      for (failure <- result.failed) log.debug("The job that waits for task slots has ended", failure)
      ended()
    }(ExecutionContext.global)
  }
}

object WaitingJob {
  private val log = LoggerFactory.getLogger(getClass.getName.stripSuffix("$"))

  /**
   * Whether this failure of a job means that it was cancelled. The message says so in all versions: `DAGScheduler` (3.5
   * to 4.2) has no error class for this that all of them know.
   */
  def isCancellation(failure: Throwable): Boolean = failure match {
    case failed: SparkException => Option(failed.getMessage).exists(Cancelled.findPrefixOf(_).isDefined)
    case _                      => false
  }

  private val Cancelled = "(\\[SPARK_JOB_CANCELLED] )?Job \\d+ cancelled".r

  private val PauseNanos = TimeUnit.SECONDS.toNanos(1)

  private val readNothing: (TaskContext, Iterator[Unit]) => Unit = (_, _) => ()

  /**
   * More tasks than the slots that may exist at the next check. Dynamic allocation requests executors for all tasks, so
   * there it is only one task more than the slots.
   */
  private def tasksAbove(slots: Int, isDynamic: Boolean): Int = if (isDynamic) slots + 1 else 2 * slots + 1000

  private final case class Empty(index: Int) extends Partition

  /**
   * On submission, DAGScheduler rejects a barrier stage with more tasks than slots (checkBarrierStageWithNumSlots). It
   * reads `isBarrier` again when it creates the tasks. In between it reads the preferred locations,
   * in submitMissingTasks.
   */
  private final class Held(sparkContext: SparkContext, tasks: Int) extends RDD[Unit](sparkContext, Nil) {
    @transient @volatile private var isSubmitted = false

    override private[spark] def isBarrier(): Boolean = isSubmitted

    override protected def getPreferredLocations(split: Partition): Seq[String] = {
      isSubmitted = true
      Nil
    }

    override protected def getPartitions: Array[Partition] = Array.tabulate[Partition](tasks)(Empty(_))

    override def compute(split: Partition, context: TaskContext): Iterator[Unit] = Iterator.empty
  }
}
