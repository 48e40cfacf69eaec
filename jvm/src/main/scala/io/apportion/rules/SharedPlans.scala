package io.apportion.rules

import scala.collection.mutable

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.{Join, JoinHint, LogicalPlan}
import org.apache.spark.sql.execution.QueryExecution
import org.apache.spark.sql.execution.adaptive.LogicalQueryStage

/**
 * The optimized plans of a query and of its subqueries. Spark plans each of them separately, but runs a shuffle that two of
 * them need only once if both have planned it alike.
 */
private[apportion] final class SharedPlans private (plans: Seq[LogicalPlan]) {
  private lazy val shared = {
    val occurrences = plans.flatMap(SharedPlans.beforeStages(_).collect { case node => node.canonicalized }.distinct)
    occurrences.groupBy(identity).collect { case (plan, all) if all.size > 1 => plan }.toSet
  }

  /** Whether two of the plans have this part, which may have stages by now. */
  def isShared(part: LogicalPlan): Boolean = shared(SharedPlans.beforeStages(part).canonicalized)

  /** Whether any of the plans has such a node. */
  def exists(test: LogicalPlan => Boolean): Boolean = plans.exists(_.exists(test))
}

private[apportion] object SharedPlans {
  private val known = mutable.WeakHashMap.empty[QueryExecution, Option[SharedPlans]]

  /** The plans of the query that runs in this thread, if it has subqueries. */
  def of(session: SparkSession): Option[SharedPlans] =
    CurrentQuery
      .of(session)
      .flatMap(query => synchronized(known.getOrElseUpdate(query, CurrentQuery.optimizedPlan(query).flatMap(in))))

  /** A plan and those of its subqueries, if it has any. */
  def in(plan: LogicalPlan): Option[SharedPlans] =
    Some(plan +: plan.subqueriesAll).filter(_.size > 1).map(new SharedPlans(_))

  /** The part of the optimized plan that a plan comes from. `DynamicJoinSelection` adds hints when stages have run. */
  def beforeStages(plan: LogicalPlan): LogicalPlan = plan.transformDown {
    case LogicalQueryStage(logical, _) => beforeStages(logical)
    case join: Join                    => join.copy(hint = JoinHint.NONE)
  }
}
