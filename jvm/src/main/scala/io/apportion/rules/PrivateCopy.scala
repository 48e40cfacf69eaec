package io.apportion.rules

import org.apache.spark.sql.catalyst.expressions.{Attribute, SubqueryExpression}
import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, LogicalPlan}
import org.apache.spark.sql.catalyst.trees.TreePattern.PLAN_EXPRESSION

/** Copies plans and the plans of their subqueries, so that no node is shared with another plan. */
private[apportion] object PrivateCopy {

  def of(plan: LogicalPlan): LogicalPlan = unwrapped(wrapped(plan))

  // A transformation keeps the original node if the new one is equal. So each copy is wrapped, and unwrapped later.
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
