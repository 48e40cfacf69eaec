package io.apportion.sizing

import io.apportion.groups.ShuffleLeaf
import io.apportion.history.History
import io.apportion.rules.Guarded
import io.apportion.settings.SessionPolicy
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.SparkPlan

/** Adds the output sizes of finished stages to the history, for the next run of the query. */
case class RememberOutputs(session: SparkSession) extends Guarded[SparkPlan] {

  override protected def applyGuarded(plan: SparkPlan): SparkPlan = {
    for (history <- History.of(session)) {
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
