package io.apportion.policies

import io.apportion.hints.PolicyHints
import io.apportion.rules.{Guarded, PrivateCopy}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.apportion.QueryValues
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.internal.SQLConf

/**
 * Finds the rules of the policy file that match an analyzed query, and sets their values on the query. It runs before
 * the query blocks are assigned, as rules can have hints. Without a policy file, it does nothing.
 */
case class ApplyPolicies(session: SparkSession) extends Guarded[LogicalPlan] {

  /** The settings of the session decide whether rules apply. */
  override protected def queryConf(plan: LogicalPlan): Option[SQLConf] = None

  override protected def applyGuarded(plan: LogicalPlan): LogicalPlan = {
    val rules = PolicyWatcher.rulesOf(session).toSeq.flatMap(_.matching(new PlanFacts(session, plan)))
    if (rules.isEmpty) plan
    else {
      val policy = QueryPolicy.of(rules, conf)
      val privateCopy = PrivateCopy.of(plan)
      if (policy.values.values.nonEmpty) QueryValues.put(privateCopy, policy.values)
      if (policy.hints != PolicyHints.none) PolicyHints.put(privateCopy, policy.hints)
      privateCopy
    }
  }

  /** Observed decisions use the values of rules. */
  override protected def applyObserved(plan: LogicalPlan): LogicalPlan = applyGuarded(plan)
}
