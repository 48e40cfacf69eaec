package org.apache.spark.sql.apportion

import io.apportion.util.AnyVersion
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, ResolvedHint}
import org.apache.spark.sql.execution.columnar.InMemoryRelation

/** Looks up plans in Spark's cache. It is in Spark's namespace because the lookup is private to Spark. */
object CachedPlans {

  /**
   * Whether Spark would read a part of the plan from the cache. Only parts that satisfy `condition` are searched, down
   * from the root.
   */
  def exists(session: SparkSession, plan: LogicalPlan)(condition: LogicalPlan => Boolean): Boolean = {
    val cache = session.sharedState.cacheManager
    def isCached(part: LogicalPlan) = AnyVersion.call(cache, "useCachedData", part) match {
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
