package org.apache.spark.sql.apportion

import scala.jdk.CollectionConverters._

import io.apportion.util.AnyVersion
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.QueryExecution
import org.apache.spark.sql.streaming.StreamingQuery

/** Sessions of streaming queries. It is in Spark's namespace because the map of running streams is private to Spark SQL. */
object BatchSession {

  /**
   * The session in which the user started the query. Spark runs the batches of a stream in a clone of the session
   * (`StreamExecution.sparkSessionForStream`, 3.5 to 4.2), which users cannot query.
   */
  def starter(query: QueryExecution): SparkSession =
    running(query.sparkSession)
      .find(lastExecution(_).exists(_.sparkSession eq query.sparkSession))
      .map(_.sparkSession)
      .getOrElse(query.sparkSession)

  /** Running streams of all sessions. Their class is in another package since Spark 4.1. */
  private[apportion] def running(session: SparkSession): Iterable[StreamingQuery] =
    session.sharedState.activeStreamingQueries.asInstanceOf[java.util.Map[_, StreamingQuery]].values.asScala

  /** The execution of a stream's latest batch. */
  private[apportion] def lastExecution(stream: StreamingQuery): Option[QueryExecution] =
    Option(AnyVersion.call(stream, "lastExecution").asInstanceOf[QueryExecution])
}
