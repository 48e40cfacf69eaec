package io.apportion.hints

import io.apportion.rules.{Guarded, ReflectiveCopy}
import org.apache.spark.sql.apportion.{CachedPlans, QueryConf}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.optimizer.InlineCTE
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.trees.TreePattern.CTE
import org.apache.spark.sql.internal.SQLConf

/**
 * Records the query block of each operator and column of a query with hints, in its text or in the policy file. It
 * runs after analysis and before optimization. Other queries are not changed.
 */
case class AssignBlocks(session: SparkSession) extends Guarded[LogicalPlan] {

  override protected def applyGuarded(plan: LogicalPlan): LogicalPlan =
    PolicyHints.of(plan) match {
      case None if !HintMark.isIn(plan) => plan
      case policy                       =>
        val privateCopy = PrivateCopy.of(inlineCtes(plan))
        QueryBlockFinder.assign(privateCopy, policy.getOrElse(PolicyHints.none))
        privateCopy
    }

  /** The plan is at the beginning: it shows whether its query has settings of its own. */
  override protected def queryConf(plan: LogicalPlan): Option[SQLConf] = QueryConf.atRoot(plan)

  /** Observed decisions depend on the blocks of hints. */
  override protected def applyObserved(plan: LogicalPlan): LogicalPlan = applyGuarded(plan)

  /**
   * Puts each use of a common table expression into the block that uses it, as Spark's optimizer does later. Spark
   * looks up cached plans between these two points, so plans that it would find in the cache must not change.
   */
  private def inlineCtes(plan: LogicalPlan): LogicalPlan =
    if (plan.containsPattern(CTE) && !CachedPlans.exists(session, plan)(_.containsPattern(CTE)))
      ReflectiveCopy.allFalse(classOf[InlineCTE])(plan)
    else plan
}
