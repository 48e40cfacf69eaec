package io.apportion.rules

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.{QueryExecution, SQLExecution}

/** Which query runs. */
object CurrentQuery {

  /** The execution id of the query that runs in this thread, as Spark's UI shows it; a thread may have that of one that has ended. */
  def current(session: SparkSession): Option[Long] =
    Option(session.sparkContext.getLocalProperty(SQLExecution.EXECUTION_ID_KEY))
      .map(_.toLong)
      .filter(running(_).isDefined)

  /** The plan of the query that runs in this thread, before it was optimized. */
  def currentPlan: Option[LogicalPlan] =
    SparkSession.getActiveSession.flatMap(current).flatMap(running).map(_.normalized)

  /** The session that the user runs a query in; Spark plans cached tables in a clone of it. */
  def owner(query: Option[Long], planning: SparkSession): SparkSession =
    query.flatMap(running).fold(planning)(_.sparkSession)

  /** The query that runs with this execution id. */
  def running(id: Long): Option[QueryExecution] = Option(SQLExecution.getQueryExecution(id))
}
