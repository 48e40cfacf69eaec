package io.apportion.hints

import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnionLoop}

/** Matches the union of a recursive query. */
private[hints] object RecursiveUnion {
  def unapply(plan: LogicalPlan): Boolean = plan.isInstanceOf[UnionLoop]
}
