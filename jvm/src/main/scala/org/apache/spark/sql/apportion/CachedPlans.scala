package org.apache.spark.sql.apportion

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, ResolvedHint}
import org.apache.spark.sql.execution.columnar.InMemoryRelation

/** What Spark would read from its cache of plans; Spark keeps that lookup to itself. */
object CachedPlans {

  /** Whether the plan has a part that Spark would read from the cache, and that satisfies `condition`. */
  def exists(session: SparkSession, plan: LogicalPlan)(condition: LogicalPlan => Boolean): Boolean = {
    val cache = session.sharedState.cacheManager
    def isCached(part: LogicalPlan) = cache.useCachedData(part) match {
      case _: InMemoryRelation | ResolvedHint(_: InMemoryRelation, _) => true
      case _                                                          => false
    }
    def search(part: LogicalPlan): Boolean =
      condition(part) && (isCached(part) || part.children.exists(search) || subqueries(part).exists(search))
    !cache.isEmpty && search(plan)
  }

  private def subqueries(plan: LogicalPlan): Seq[LogicalPlan] =
    plan.expressions.flatMap(_.collect { case subquery: SubqueryExpression => subquery.plan })
}
