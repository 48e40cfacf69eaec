package io.apportion.rules

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.QueryPlanningTracker
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.{QueryExecution, SQLExecution}

/** Finds the query that runs in the current thread. */
object CurrentQuery {

  /**
   * The SQL execution id of the query that runs in this thread, as Spark's UI shows it. The id of a query that has
   * ended is ignored: Spark may leave it in the thread.
   */
  def current(session: SparkSession): Option[Long] =
    idIn(session, SQLExecution.EXECUTION_ID_KEY).filter(running(_).isDefined)

  /** The query that runs in this thread, if any. */
  def of(session: SparkSession): Option[QueryExecution] =
    idIn(session, SQLExecution.EXECUTION_ID_KEY).flatMap(running)

  /** The query that started the query in this thread, if any. */
  def outermost(session: SparkSession): Option[QueryExecution] =
    idIn(session, SQLExecution.EXECUTION_ROOT_ID_KEY).flatMap(running)

  /** The logical plan of the query that runs in this thread, before optimization. */
  def currentPlan: Option[LogicalPlan] =
    SparkSession.getActiveSession.flatMap(of).map(_.normalized)

  /** The optimized plan of a query; `None` while a rule of its optimizer runs another query, as those of Delta Lake do. */
  def optimizedPlan(query: QueryExecution): Option[LogicalPlan] =
    Option.when(query.tracker.phases.contains(QueryPlanningTracker.OPTIMIZATION))(query.optimizedPlan)

  /** The running query with this execution id. */
  def running(id: Long): Option[QueryExecution] = Option(SQLExecution.getQueryExecution(id))

  private def idIn(session: SparkSession, key: String): Option[Long] =
    Option(session.sparkContext.getLocalProperty(key)).map(_.toLong)
}
