package org.apache.spark.sql.apportion

import java.util.concurrent.TimeUnit

import scala.util.Try

import io.apportion.util.AnyVersion
import org.apache.spark.{MapOutputTrackerMaster, SparkEnv}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.exchange.{BroadcastExchangeExec, ShuffleExchangeExec}
import org.apache.spark.sql.streaming.{StreamingQuery, StreamingQueryProgress}

/**
 * Bytes that a batch of a stream gave to its stateful operators. Spark's progress reports do not have them.
 *
 * @param shuffled bytes for each state partition, in Spark's compressed map output sizes
 * @param broadcast bytes of the batch's broadcast tables
 */
final case class BatchBytes(shuffled: Seq[Long], broadcast: Long)

/** Batches of running streams. It is in Spark's namespace because the map of running streams is private to Spark SQL. */
object StreamBatches {
  private val PollMillis = 20L

  /**
   * Returns the reports that are later than `after`, oldest first. Waits until there is one, the query ends, or the
   * time is over.
   */
  def await(query: StreamingQuery, after: Option[String], millis: Long): Seq[StreamingQueryProgress] = {
    def isNew(report: StreamingQueryProgress) = after.forall(report.timestamp > _)
    val end = System.nanoTime + TimeUnit.MILLISECONDS.toNanos(millis)
    while (query.isActive && !Option(query.lastProgress).exists(isNew) && System.nanoTime < end)
      Thread.sleep(PollMillis)
    query.recentProgress.filter(isNew).toSeq
  }

  /** The bytes of a stream's last batch. `None` if the next batch has begun, or nothing was shuffled. */
  def bytesOf(session: SparkSession, query: StreamingQuery, batch: StreamingQueryProgress): Option[BatchBytes] =
    for {
      stream <- BatchSession.running(session).find(_.id == query.id)
      execution <- BatchSession.lastExecution(stream)
      if AnyVersion.call(execution, "currentBatchId") == batch.batchId
      partitions = batch.stateOperators.map(_.numShufflePartitions).foldLeft(0L)(_ max _)
      plan <- Try(execution.executedPlan).toOption
      shuffles = plan.collect {
        case exchange: ShuffleExchangeExec if exchange.outputPartitioning.numPartitions == partitions =>
          bytesByPartition(exchange)
      }.flatten
      if shuffles.nonEmpty
    } yield BatchBytes(shuffles.transpose.map(_.sum), broadcastBytes(plan))

  /** The batch has ended, so its shuffles exist, and `shuffleDependency` only reads them. */
  private def bytesByPartition(exchange: ShuffleExchangeExec): Option[Seq[Long]] =
    Option(SparkEnv.get)
      .map(_.mapOutputTracker)
      .collect { case tracker: MapOutputTrackerMaster =>
        Try(tracker.getStatistics(exchange.shuffleDependency).bytesByPartitionId.toSeq).toOption
      }
      .flatten

  private def broadcastBytes(plan: SparkPlan): Long =
    plan.collect { case exchange: BroadcastExchangeExec => exchange.metrics("dataSize").value }.sum
}
