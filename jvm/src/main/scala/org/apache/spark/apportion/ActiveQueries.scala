package org.apache.spark.apportion

import java.util.Properties

import scala.jdk.CollectionConverters._

import org.apache.spark.SparkContext
import org.apache.spark.scheduler.{Pool, Schedulable, TaskSetManager}
import org.apache.spark.sql.execution.SQLExecution

/** Queries that share the task slots of an application. It is in Spark's namespace because task sets are private to Spark. */
private[apportion] object ActiveQueries {

  /**
   * Names of the queries and jobs that have tasks to run. The queues of Spark's scheduler can be read without a lock
   * (`Pool.schedulableQueue`, 3.5 to 4.2).
   */
  def names(sparkContext: SparkContext): Set[String] =
    Option(sparkContext.taskScheduler.rootPool).toSet[Pool].flatMap(inside(_)).flatMap { tasks =>
      val hasTasks = tasks.runningTasks > 0 || tasks.isSchedulable
      if (hasTasks) Some(name(tasks.taskSet.properties, tasks.taskSet.priority)) else None
    }

  /** Name of the query that runs in this thread, if one does. */
  def current(sparkContext: SparkContext): Option[String] =
    Option(sparkContext.getLocalProperty(SQLExecution.EXECUTION_ID_KEY)).map(id =>
      query(Option(sparkContext.getLocalProperty(SQLExecution.EXECUTION_ROOT_ID_KEY)).getOrElse(id))
    )

  /** @param job id of the job, which Spark uses as priority */
  private def name(properties: Properties, job: Int): String = {
    def property(key: String) = Option(properties).flatMap(set => Option(set.getProperty(key)))
    property(SQLExecution.EXECUTION_ROOT_ID_KEY)
      .orElse(property(SQLExecution.EXECUTION_ID_KEY))
      .fold(s"job $job")(query)
  }

  private def query(id: String): String = s"query $id"

  private def inside(of: Schedulable): Seq[TaskSetManager] = of match {
    case tasks: TaskSetManager => Seq(tasks)
    case pool: Pool            => pool.schedulableQueue.asScala.toSeq.flatMap(inside(_))
    case _                     => Nil
  }
}
