package io.apportion.aqe

import io.apportion.Guarded
import io.apportion.conf.Settings
import io.apportion.history.{History, Output, PlanFingerprint}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.exchange.ShuffleExchangeLike

/** What earlier runs tell of exchanges, where the session keeps a history. */
private[aqe] object ExchangeHistory {

  /** The fingerprint of an exchange, and the bytes of the leaves below it. */
  val Mark: TreeNodeTag[(String, Long)] = TreeNodeTag("apportion.history")

  def of(session: SparkSession): Option[History] =
    Settings.HistoryPath.get(session.sessionState.conf).map(History.in(_, session))

  /** What an exchange is likely to put out. It is marked, so that what it puts out indeed is remembered. */
  def predict(history: History, exchange: ShuffleExchangeLike): Option[Remembered] = {
    val fingerprint = PlanFingerprint.of(exchange.child)
    val leafBytes = LikelyOutput.leafBytes(exchange.child)
    exchange.setTagValue(Mark, fingerprint -> leafBytes)
    history
      .predict(fingerprint, leafBytes)
      .map(output => Remembered(output.stored, output.expanded, sameLiterals = false))
  }
}

/** The largest output of recent runs, scaled to what the plan reads now. */
private[aqe] final case class Remembered(stored: Long, expanded: Long, sameLiterals: Boolean)

/** Remembers what finished stages produced, for the next run. */
case class RememberOutputs(session: SparkSession) extends Guarded[SparkPlan] {

  override protected def applyGuarded(plan: SparkPlan): SparkPlan = {
    for {
      history <- ExchangeHistory.of(session)
      stage <- plan.collect { case ShuffleLeaf(ShuffleLeaf(_, _, Some(stage))) => stage }.distinctBy(_.id)
      (fingerprint, leafBytes) <- stage.shuffle.getTagValue(ExchangeHistory.Mark)
    } {
      val stored = Expansion.stored(stage)
      history.remember(fingerprint, Output(stored, (stored * Expansion.of(stage)).toLong, leafBytes))
    }
    plan
  }
}
