package org.apache.spark.apportion.ui

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/** Check rule that adds the tab to the UI with the first query. It accepts every plan. */
case class ShowTab(session: SparkSession) extends (LogicalPlan => Unit) {
  ApportionTab.attach(session.sparkContext)

  override def apply(plan: LogicalPlan): Unit = ()
}
