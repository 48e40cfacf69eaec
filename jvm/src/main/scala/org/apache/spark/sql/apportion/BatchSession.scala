package org.apache.spark.sql.apportion

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.QueryExecution

/** Sessions of streaming queries. It is in Spark's namespace because the map of running streams is private to Spark SQL. */
object BatchSession {

  /**
   * The session in which the user started the query. Spark runs the batches of a stream in a clone of the session
   * (`StreamExecution.sparkSessionForStream`, 3.5 to 4.2), which users cannot query.
   */
  def starter(query: QueryExecution): SparkSession =
    query.sparkSession.sharedState.activeStreamingQueries.values.asScala
      .find(stream => Option(stream.lastExecution).exists(_.sparkSession eq query.sparkSession))
      .map(_.sparkSession)
      .getOrElse(query.sparkSession)
}
