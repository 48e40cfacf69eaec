package io.apportion.hints

import io.apportion.Guarded
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.{Attribute, SubqueryExpression}
import org.apache.spark.sql.catalyst.optimizer.InlineCTE
import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, LogicalPlan}
import org.apache.spark.sql.catalyst.trees.TreePattern.{CTE, PLAN_EXPRESSION}
import org.apache.spark.sql.apportion.CachedPlans

/**
 * Once a query with hints is analyzed, and before anything is optimized, notes which block each of its operators and columns
 * belongs to. A query without hints is not touched.
 */
case class AssignBlocks(session: SparkSession) extends Guarded[LogicalPlan] {

  override protected def applyGuarded(plan: LogicalPlan): LogicalPlan =
    if (HintMark.isIn(plan)) {
      val own = PrivateCopy.of(inlineCtes(plan))
      QueryBlocks.assign(own)
      own
    } else plan

  /**
   * Puts each use of a common table expression into the block that uses it, as Spark's optimizer is about to do. Spark looks
   * up cached plans before it does so, thus none that it would find may change.
   */
  private def inlineCtes(plan: LogicalPlan): LogicalPlan =
    if (plan.containsPattern(CTE) && !CachedPlans.exists(session, plan)(_.containsPattern(CTE))) InlineCTE()(plan)
    else plan
}

/** Copies of plans that share no node with any other, those of subqueries included. */
private[hints] object PrivateCopy {

  def of(plan: LogicalPlan): LogicalPlan = unwrapped(wrapped(plan))

  // A copy that is equal would not be put in place of the original, so it goes in wrapped, and is then unwrapped.
  private def wrapped(plan: LogicalPlan): LogicalPlan =
    subqueriesIn(plan.clone())(subquery => Wrapper(wrapped(subquery)))

  private def unwrapped(plan: LogicalPlan): LogicalPlan = subqueriesIn(plan) {
    case Wrapper(subquery) => unwrapped(subquery)
    case other             => other
  }

  private def subqueriesIn(plan: LogicalPlan)(change: LogicalPlan => LogicalPlan): LogicalPlan =
    plan.transformAllExpressionsWithPruning(_.containsPattern(PLAN_EXPRESSION)) { case subquery: SubqueryExpression =>
      subquery.withNewPlan(change(subquery.plan))
    }

  private case class Wrapper(plan: LogicalPlan) extends LeafNode {
    override def output: Seq[Attribute] = plan.output
  }
}
