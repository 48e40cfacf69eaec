package io.apportion.hints

import io.apportion.rules.{Guarded, ReflectiveCopy}
import org.apache.spark.sql.apportion.CachedPlans
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.optimizer.InlineCTE
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.trees.TreePattern.CTE

/**
 * Once a query with hints is analyzed, and before anything is optimized, notes which block each of its operators and columns
 * belongs to. A query without hints is not touched.
 */
case class AssignBlocks(session: SparkSession) extends Guarded[LogicalPlan] {

  override protected def applyGuarded(plan: LogicalPlan): LogicalPlan =
    if (HintMark.isIn(plan)) {
      val own = PrivateCopy.of(inlineCtes(plan))
      QueryBlockFinder.assign(own)
      own
    } else plan

  /** The blocks of hints are part of observed decisions. */
  override protected def applyObserved(plan: LogicalPlan): LogicalPlan = applyGuarded(plan)

  /**
   * Puts each use of a common table expression into the block that uses it, as Spark's optimizer is about to do. Spark looks
   * up cached plans before it does so, thus none that it would find may change.
   */
  private def inlineCtes(plan: LogicalPlan): LogicalPlan =
    if (plan.containsPattern(CTE) && !CachedPlans.exists(session, plan)(_.containsPattern(CTE)))
      ReflectiveCopy.allFalse(classOf[InlineCTE])(plan)
    else plan
}
