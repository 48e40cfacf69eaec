package org.apache.spark.apportion

import scala.jdk.CollectionConverters._

import org.apache.spark.SparkContext
import org.apache.spark.scheduler.{Pool, Schedulable, TaskSetManager}
import org.apache.spark.sql.execution.SQLExecution

/** Queries that share the task slots of an application. It is in Spark's namespace because task sets are private to Spark. */
private[apportion] object ActiveQueries {

  /**
   * Names of the queries and jobs that have tasks to run. The queues of Spark's scheduler can be read without a lock
   * (`Pool.schedulableQueue`, 3.5 to 4.2). A context that stops has no scheduler.
   */
  def names(sparkContext: SparkContext): Set[String] =
    Option(sparkContext.taskScheduler)
      .flatMap(scheduler => Option(scheduler.rootPool))
      .toSet[Pool]
      .flatMap(inside(_))
      .filter(tasks => tasks.runningTasks > 0 || tasks.isSchedulable)
      .map(_.taskSet)
      // Spark uses the id of the job as priority.
      .map(tasks =>
        Option(tasks.properties).flatMap(set => query(set.getProperty(_))).getOrElse(s"job ${tasks.priority}")
      )

  /** Name of the query that runs in this thread, if one does. */
  def current(sparkContext: SparkContext): Option[String] = query(sparkContext.getLocalProperty)

  private def query(property: String => String): Option[String] =
    Option(property(SQLExecution.EXECUTION_ROOT_ID_KEY))
      .orElse(Option(property(SQLExecution.EXECUTION_ID_KEY)))
      .map(id => s"query $id")

  private def inside(of: Schedulable): Seq[TaskSetManager] = of match {
    case tasks: TaskSetManager => Seq(tasks)
    case pool: Pool            => pool.schedulableQueue.asScala.toSeq.flatMap(inside(_))
    case _                     => Nil
  }
}
