package io.apportion.joins

import io.apportion.history.{History, LeafBytes, PlanFingerprint, Run, Runs}
import io.apportion.memory.{BroadcastMemory, RowHolders}
import io.apportion.util.{BoundedMap, PerApplication}
import org.apache.spark.apportion.Heaps
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.statsEstimation.EstimationUtils
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.BroadcastQueryStageExec
import org.apache.spark.sql.execution.exchange.BroadcastExchangeExec
import org.apache.spark.sql.execution.joins.HashedRelationBroadcastMode

/**
 * Sizes of the broadcast tables of earlier runs: failed ones in memory, and all in the history if there is one. Only
 * runs with the same literals count: with another literal, a filter may leave few rows.
 */
private[apportion] final class KnownBroadcasts private (history: Option[History], failures: BoundedMap[String, Runs]) {
  import KnownBroadcasts._

  /** Bytes of the hash table of these rows if their broadcast failed in this application. */
  def failed(build: SparkPlan): Option[Long] =
    if (failures.isEmpty) None
    else {
      val fingerprint = PlanFingerprint.of(build)
      failures.get(nameOf(fingerprint)).flatMap(_.predict(fingerprint.literals, LeafBytes.of(build)))
    }

  /** Bytes of the hash table of these rows, by the history and the bytes that the plan reads now. */
  def recorded(build: SparkPlan): Option[Long] = history.flatMap { history =>
    val fingerprint = PlanFingerprint.of(build)
    history.predict(fingerprint.copy(plan = nameOf(fingerprint)), LeafBytes.of(build))
  }

  /** Adds the size of a finished broadcast to the history. */
  def remember(stage: BroadcastQueryStageExec, bytes: Long): Unit =
    for (history <- history if history.isNew(stage.broadcast.id)) {
      val (name, run) = describe(stage.broadcast.child, bytes)
      history.add(name, run)
    }

  /** Adds a broadcast that failed after it had collected this number of rows. It counts as too large in any case. */
  def rememberFailed(exchange: BroadcastExchangeExec, rows: Long, heaps: Heaps): Unit = {
    val bytes = EstimationUtils.getSizePerRow(exchange.child.output) * rows
    val counted = bytes.min(Long.MaxValue / 2).toLong.max(BroadcastMemory.smallestTooLarge(heaps))
    val (name, run) = describe(exchange.child, counted)
    failures.put(name, Runs.of(Seq(run)))
    history.foreach(_.add(name, run))
  }
}

private[apportion] object KnownBroadcasts {
  private val MaxFailed = 1000

  /** Failed broadcasts by the name of their rows. */
  private val failures = new PerApplication(_ => new BoundedMap[String, Runs](MaxFailed))

  /** The broadcasts that a session's application knows. */
  def of(session: SparkSession): KnownBroadcasts =
    new KnownBroadcasts(History.of(session), failures.of(session.sparkContext))

  /** Bytes of the hash table of a broadcast that has started; `None` until its rows are known. */
  def tableBytes(stage: BroadcastQueryStageExec): Option[Long] = stage.broadcast match {
    case BroadcastExchangeExec(HashedRelationBroadcastMode(keys, _), rows) =>
      val counted = stage.getRuntimeStatistics.rowCount.filter(_ > 0).map(_.toLong)
      counted.orElse(ParquetRows.of(rows, tooLarge = 1)).map(RowHolders.tableBytes(_, stage.output, keys))
    case _ => None
  }

  private def describe(build: SparkPlan, bytes: Long): (String, Run) = {
    val fingerprint = PlanFingerprint.of(build)
    val leafBytes = LeafBytes.of(build)
    nameOf(fingerprint) -> Run(fingerprint.literals, bytes, leafBytes, System.currentTimeMillis())
  }

  /** A shuffle of the same rows has another size, so it has another name. */
  private def nameOf(fingerprint: PlanFingerprint): String =
    PlanFingerprint.combined(Seq("broadcast", fingerprint.plan))
}
