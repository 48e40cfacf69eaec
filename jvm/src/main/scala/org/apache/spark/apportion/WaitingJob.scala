package org.apache.spark.apportion

import java.util.concurrent.TimeUnit
import java.util.concurrent.atomic.AtomicReference

import scala.concurrent.ExecutionContext
import scala.util.{Failure, Success, Try}

import org.apache.spark.{Partition, SparkContext, SparkException, TaskContext}
import org.apache.spark.rdd.RDD
import org.apache.spark.scheduler.JobWaiter
import org.apache.spark.sql.execution.SQLExecution
import org.apache.spark.util.Utils
import org.slf4j.LoggerFactory

/**
 * A Spark job that runs no task while a query waits, so that Spark's ways to cancel a query reach it: by job group, by tag, or all
 * jobs. DAGScheduler (3.5 to 4.2) cancels only active jobs and running stages, and posts no event.
 *
 * The job is a barrier stage with more tasks than there are slots, which TaskSchedulerImpl.resourceOffers holds back without
 * occupying a slot. It belongs to the job group and the tags of the thread that makes it, but not to its SQL execution: the query's
 * page in the UI does not list a job that ends by being cancelled. Not thread-safe.
 *
 * In Spark's namespace because DAGScheduler and barrier stages are private to it.
 */
final class WaitingJob(sparkContext: SparkContext, description: String) {
  import WaitingJob._

  private val properties = Utils.cloneProperties(sparkContext.getLocalProperties)
  properties.remove(SQLExecution.EXECUTION_ID_KEY)
  properties.setProperty(SparkContext.SPARK_JOB_DESCRIPTION, description)

  private var notBefore = System.nanoTime()
  private var current = Option.empty[JobWaiter[Unit]]
  private val outcome = new AtomicReference[Option[Try[Unit]]](None)

  /** Submits the job if it does not run; `ended` is called when it ends, in another thread. */
  def keepRunning(ended: () => Unit): Unit = outcome.get match {
    case None if current.isDefined                                 => // It runs.
    case None | Some(Success(_)) if System.nanoTime() >= notBefore => submit(ended)
    case _ => // It has just run, as executors came; it was cancelled; or its tasks do not run on this cluster.
  }

  def isCancelled: Boolean = cancellation.isDefined

  /** Throws the error that the cancelled job ended with. */
  def throwIfCancelled(): Unit = cancellation.foreach(failure => throw failure)

  def end(): Unit =
    for (job <- current if !job.jobFinished && !sparkContext.isStopped)
      sparkContext.cancelJob(job.jobId, "as the query no longer waits for task slots")

  private def cancellation: Option[Throwable] = outcome.get.collect {
    case Failure(failure) if isCancellation(failure) => failure
  }

  private def submit(ended: () => Unit): Unit = {
    outcome.set(None)
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
      outcome.set(Some(result))
      for (failure <- result.failed) log.debug("The job of a query that waits for task slots has ended", failure)
      ended()
    }(ExecutionContext.global)
  }
}

object WaitingJob {
  private val log = LoggerFactory.getLogger(getClass.getName.stripSuffix("$"))

  /**
   * Whether a job that failed with this was cancelled. DAGScheduler.abortStage begins the message of other failures with these words
   * (3.5 to 4.2); Spark 3.5 has no error class for a cancelled job.
   */
  def isCancellation(failure: Throwable): Boolean = failure match {
    case failed: SparkException => !failed.getMessage.startsWith("Job aborted due to stage failure")
    case _                      => false
  }

  private val PauseNanos = TimeUnit.SECONDS.toNanos(1)

  private val readNothing: (TaskContext, Iterator[Unit]) => Unit = (_, _) => ()

  /** More tasks than slots that may come before the next look. Dynamic allocation requests an executor for each, so it gets one. */
  private def tasksAbove(slots: Int, isDynamic: Boolean): Int = if (isDynamic) slots + 1 else 2 * slots + 1000

  private final case class Empty(index: Int) extends Partition

  /**
   * DAGScheduler refuses a barrier stage with more tasks than slots when the job is submitted (checkBarrierStageWithNumSlots), and
   * reads `isBarrier` again when it makes the tasks. It reads the preferred locations in between (submitMissingTasks).
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
