package org.apache.spark.sql.apportion

import org.apache.spark.sql.execution.QueryExecution
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd

/** The query that an event is about. It is in Spark's namespace because the field is private to Spark SQL. */
object EndedQuery {
  def unapply(event: SparkListenerSQLExecutionEnd): Option[QueryExecution] = Option(event.qe)
}
