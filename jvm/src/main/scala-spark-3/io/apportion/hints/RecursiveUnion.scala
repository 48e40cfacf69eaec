package io.apportion.hints

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/** Matches the union of a recursive query, which Spark 3 does not have. */
private[hints] object RecursiveUnion {
  def unapply(plan: LogicalPlan): Boolean = false
}
