package io.apportion.sizing

import io.apportion.groups.RowSizeRatio
import io.apportion.history.{History, PlanFingerprint, Remembered, Run}
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.adaptive.ShuffleQueryStageExec
import org.apache.spark.sql.execution.exchange.ShuffleExchangeLike

/** Connects the exchanges of a plan with the history of their output sizes, if the application keeps a history. */
private[apportion] object ExchangeHistory {

  /** Fingerprint of the plan below an exchange, and the bytes of the plan's leaves. */
  private val Mark: TreeNodeTag[(PlanFingerprint, Long)] = TreeNodeTag("apportion.history")

  /**
   * Predicts the output of an exchange. Marks the exchange with its fingerprint, before Spark's stage rules change
   * the plan.
   */
  def predict(history: History, exchange: ShuffleExchangeLike): Option[Remembered] = {
    val (fingerprint, leafBytes) = markOf(exchange)
    exchange.setTagValue(Mark, (fingerprint, leafBytes))
    history.predict(fingerprint, leafBytes)
  }

  /**
   * Adds the output of a finished stage to the history, with or without an earlier prediction.
   *
   * @param targetBytes whether the target size counts row bytes instead of stored bytes, and the target size in bytes
   */
  def remember(history: History, stage: ShuffleQueryStageExec, targetBytes: => (Boolean, Long)): Unit =
    if (history.isNew(stage.shuffle.id)) {
      val (fingerprint, leafBytes) = stage.shuffle.getTagValue(Mark).getOrElse(markOf(stage.shuffle))
      val stored = RowSizeRatio.stored(stage)
      val expanded = (stored * RowSizeRatio.of(stage)).toLong
      val (countsRows, target) = targetBytes
      val perPartition =
        (if (countsRows) expanded else stored).toDouble / stage.shuffle.outputPartitioning.numPartitions
      val overload = (perPartition / target).max(1)
      history.add(
        fingerprint.plan,
        Run(fingerprint.literals, stored, expanded, leafBytes, overload, System.currentTimeMillis())
      )
    }

  private def markOf(exchange: ShuffleExchangeLike): (PlanFingerprint, Long) =
    (PlanFingerprint.of(exchange.child), OutputEstimate.leafBytes(exchange.child))
}
