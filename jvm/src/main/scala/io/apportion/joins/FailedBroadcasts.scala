package io.apportion.joins

import scala.util.Failure
import scala.util.control.NonFatal

import io.apportion.util.PerApplication
import org.apache.spark.SparkContext
import org.apache.spark.apportion.ExecutorResources
import org.apache.spark.scheduler.{SparkListener, SparkListenerEvent}
import org.apache.spark.sql.apportion.EndedQuery
import org.apache.spark.sql.execution.QueryExecution
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanHelper
import org.apache.spark.sql.execution.exchange.BroadcastExchangeExec
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd

/**
 * Finds broadcasts that failed, so that the next run of the query does not try again. Spark reports the failure to the
 * query alone (`BroadcastExchangeExec.relationFuture`).
 */
private[apportion] object FailedBroadcasts extends AdaptiveSparkPlanHelper {
  private val listeners = new PerApplication(_.addSparkListener(new Listener))

  /** Looks at the queries that end in an application from now on. */
  def watch(sparkContext: SparkContext): Unit = listeners.of(sparkContext)

  private final class Listener extends SparkListener {
    override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
      case end: SparkListenerSQLExecutionEnd if !end.errorMessage.forall(_.isEmpty) =>
        EndedQuery.unapply(end).foreach(remember)
      case _ =>
    }
  }

  private def remember(query: QueryExecution): Unit =
    try
      collectWithSubqueries(query.executedPlan) { case exchange: BroadcastExchangeExec => exchange }.foreach {
        exchange =>
          val rows = exchange.metrics("numOutputRows").value
          exchange.completionFuture.value match {
            case Some(Failure(failure)) if isTooLarge(failure, rows) =>
              val session = query.sparkSession
              KnownBroadcasts.of(session).rememberFailed(exchange, rows, ExecutorResources.heaps(session.sparkContext))
            case _ =>
          }
      }
    catch { case NonFatal(_) => () }

  /**
   * Whether a failure shows that the table is too large. After the rows have been collected, Spark only builds and sends
   * the table. Spark 4 wraps a lack of memory in an error without its cause.
   */
  private def isTooLarge(failure: Throwable, rows: Long): Boolean = {
    val causes = Iterator.iterate(failure)(_.getCause).takeWhile(_ != null).take(20).toSeq
    !causes.exists(_.isInstanceOf[InterruptedException]) &&
    (rows > 0 || causes.exists(_.isInstanceOf[OutOfMemoryError]))
  }
}
