package io.apportion.aqe

import io.apportion.Guarded
import io.apportion.conf.{SessionPolicy, Settings}
import io.apportion.history.{History, PlanFingerprint, Remembered, Run}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.ShuffleQueryStageExec
import org.apache.spark.sql.execution.exchange.ShuffleExchangeLike

/** Outputs of exchanges in earlier runs, if the application keeps a history. */
private[aqe] object ExchangeHistory {

  /** The fingerprint of the plan below an exchange, and the bytes of that plan's leaves. */
  private val Mark: TreeNodeTag[(PlanFingerprint, Long)] = TreeNodeTag("apportion.history")

  def of(session: SparkSession): Option[History] =
    Settings.HistoryPath.get(session.sessionState.conf).flatMap(History.of(session.sparkContext, _))

  /** Predicts an exchange's output, and marks the exchange with its fingerprint as it is before the stage rules of Spark change it. */
  def predict(history: History, exchange: ShuffleExchangeLike): Option[Remembered] = {
    val (fingerprint, leafBytes) = markOf(exchange)
    exchange.setTagValue(Mark, (fingerprint, leafBytes))
    history.predict(fingerprint, leafBytes)
  }

  /** Adds the output of a finished stage, whether or not its number of partitions was chosen by a prediction. */
  def remember(history: History, stage: ShuffleQueryStageExec, targetBytes: => (Boolean, Long)): Unit =
    if (history.isNew(stage.shuffle.id)) {
      val (fingerprint, leafBytes) = stage.shuffle.getTagValue(Mark).getOrElse(markOf(stage.shuffle))
      val stored = Expansion.stored(stage)
      val expanded = (stored * Expansion.of(stage)).toLong
      val (isExpanded, target) = targetBytes
      val perPartition =
        (if (isExpanded) expanded else stored).toDouble / stage.shuffle.outputPartitioning.numPartitions
      val overload = (perPartition / target).max(1)
      history.add(
        fingerprint.plan,
        Run(fingerprint.literals, stored, expanded, leafBytes, overload, System.currentTimeMillis())
      )
    }

  private def markOf(exchange: ShuffleExchangeLike): (PlanFingerprint, Long) =
    (PlanFingerprint.of(exchange.child), LikelyOutput.leafBytes(exchange.child))
}

/** Remembers the outputs of finished stages for the next run. */
case class RememberOutputs(session: SparkSession) extends Guarded[SparkPlan] {

  override protected def applyGuarded(plan: SparkPlan): SparkPlan = {
    for (history <- ExchangeHistory.of(session)) {
      lazy val target = {
        val policy = new SessionPolicy(conf, session.sparkContext).policy()
        (policy.rowBytes, policy.dataVolumePerTask)
      }
      plan.foreach {
        case ShuffleLeaf(leaf) if leaf.forbids.isEmpty =>
          leaf.stage.filter(_.isMaterialized).foreach(ExchangeHistory.remember(history, _, target))
        case _ =>
      }
    }
    plan
  }

  override protected def applyObserved(plan: SparkPlan): SparkPlan = applyGuarded(plan)
}
