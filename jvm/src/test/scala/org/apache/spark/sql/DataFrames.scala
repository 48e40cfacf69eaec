package org.apache.spark.sql

import org.apache.spark.sql.apportion.Classic
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/** Data frames of logical plans, which Spark keeps to itself. */
object DataFrames {
  def of(session: SparkSession, plan: LogicalPlan): DataFrame =
    Classic.Dataset.ofRows(session.asInstanceOf[Classic.SparkSession], plan)
}
