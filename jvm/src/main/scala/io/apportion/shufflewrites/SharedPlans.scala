package io.apportion.shufflewrites

import scala.collection.mutable

import io.apportion.rules.CurrentQuery
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, LogicalPlan, RepartitionOperation, Union}
import org.apache.spark.sql.execution.{QueryExecution, SparkPlan}

/**
 * Plans that occur in a query and in one of its subqueries, which Spark plans separately and runs once if their shuffles
 * are equal. Where one of the two has to keep Spark's number of partitions, the other one has to keep it too. Unions and
 * repartitions keep numbers, so only queries that have one of these are searched.
 */
private[shufflewrites] object SharedPlans {
  private val known = mutable.WeakHashMap.empty[QueryExecution, Set[LogicalPlan]]

  /** Whether a shuffle may run for a query and for its subquery, and one of them may keep Spark's number. */
  def isShared(exchange: SparkPlan, session: SparkSession): Boolean =
    CurrentQuery.of(session).exists { query =>
      val shared = synchronized(known.getOrElseUpdate(query, sharedIn(query)))
      shared.nonEmpty && exchange.children.head
        .collectFirst { case node if node.logicalLink.isDefined => node.logicalLink.get }
        .exists {
          case aggregate: Aggregate => shared(aggregate.canonicalized) || shared(aggregate.child.canonicalized)
          case plan                 => shared(plan.canonicalized)
        }
    }

  private def sharedIn(query: QueryExecution): Set[LogicalPlan] =
    CurrentQuery.optimizedPlan(query).map(plan => plan +: subqueries(plan)) match {
      case Some(plans) if plans.size > 1 && plans.exists(_.exists(keepsNumber)) =>
        val occurrences = plans.flatMap(_.collect { case node => node.canonicalized }.distinct)
        occurrences.groupBy(identity).collect { case (plan, all) if all.size > 1 => plan }.toSet
      case _ => Set.empty
    }

  private def keepsNumber(node: LogicalPlan): Boolean = node match {
    case _: RepartitionOperation | _: Union => true
    case _                                  => false
  }

  private def subqueries(plan: LogicalPlan): Seq[LogicalPlan] = plan
    .collect { case node => node.expressions.flatMap(_.collect { case subquery: SubqueryExpression => subquery.plan }) }
    .flatten
    .flatMap(subquery => subquery +: subqueries(subquery))
}
