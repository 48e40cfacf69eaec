package org.apache.spark.apportion.ui

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/** Adds the tab to the UI with the first query; it checks nothing. */
case class ShowTab(session: SparkSession) extends (LogicalPlan => Unit) {
  ApportionTab.attach(session.sparkContext)

  override def apply(plan: LogicalPlan): Unit = ()
}
