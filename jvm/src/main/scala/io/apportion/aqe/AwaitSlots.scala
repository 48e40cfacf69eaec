package io.apportion.aqe

import io.apportion.Guarded
import io.apportion.conf.SessionPolicy
import io.apportion.report.Executions
import io.apportion.resources.Coordination
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.SparkPlan

/** Before a stage starts, waits for the slots without which the query may not run, if there are any such. */
case class AwaitSlots(session: SparkSession) extends Guarded[SparkPlan] {

  override protected def applyGuarded(plan: SparkPlan): SparkPlan = {
    Executions
      .current(session)
      .foreach(Coordination.of(session.sparkContext).await(_, new SessionPolicy(conf, session.sparkContext).terms))
    plan
  }
}
