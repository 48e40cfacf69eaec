package io.apportion.hints

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/** The union of a recursive query, which this Spark does not have. */
private[hints] object RecursiveUnion {
  def unapply(plan: LogicalPlan): Boolean = false
}
