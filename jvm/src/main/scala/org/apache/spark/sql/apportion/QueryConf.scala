package org.apache.spark.sql.apportion

import scala.annotation.tailrec

import io.apportion.decision.ValueSource
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.trees.{TreeNode, TreeNodeTag}
import org.apache.spark.sql.catalyst.trees.TreePattern.PLAN_EXPRESSION
import org.apache.spark.sql.execution.adaptive.LogicalQueryStage
import org.apache.spark.sql.execution.{QueryExecution, SparkPlan}
import org.apache.spark.sql.internal.SQLConf

/**
 * Values of settings that apply to one query, in place of those of its session.
 *
 * @param values  values by key
 * @param sources sources by key
 */
final case class QueryValues(values: Map[String, String], sources: Map[String, ValueSource])

/** The conf of a session with the values of one query. */
final class QueryConf(parent: SQLConf, query: QueryValues)
    extends ConfOverlay(ConfOverlay.settings(parent, query.values)) {

  def sourceOf(key: String): Option[ValueSource] = query.sources.get(key)
}

object QueryConf {
  private val Tag = TreeNodeTag[QueryValues]("apportion.queryValues")

  /** Whether any query has values of its own. If not, rules do not search their plans. */
  @volatile private var isUsed = false

  /** Sets the values of a query on its nodes, which no other query may share. */
  def put(plan: LogicalPlan, query: QueryValues): Unit = {
    isUsed = true
    plan.foreach { node =>
      node.setTagValue(Tag, query)
      if (node.containsPattern(PLAN_EXPRESSION)) node.expressions.foreach(_.foreach {
        case subquery: SubqueryExpression => put(subquery.plan, query)
        case _                            =>
      })
    }
  }

  /** The conf for the query with this logical plan. */
  def atRoot(plan: LogicalPlan): Option[SQLConf] =
    if (isUsed) plan.getTagValue(Tag).map(new QueryConf(SQLConf.get, _)) else None

  /**
   * The conf for the query that a plan is part of. `None` if the query has no values of its own.
   *
   * The nodes of the plan lead to the values. They count first, because Spark plans some queries inside another one,
   * such as the query of an EXPLAIN. The optimizer may have dropped all tagged nodes, so the running query counts next.
   *
   * @param running the query that runs in this thread
   */
  def of(plan: TreeNode[_], session: SparkSession, running: => Option[QueryExecution]): Option[SQLConf] =
    if (!isUsed) None
    else {
      val own = plan match {
        case physical: SparkPlan  => firstLink(physical).flatMap(search)
        case logical: LogicalPlan => search(logical)
        case _                    => None
      }
      // Spark plans cached tables in a clone of the session. They are not part of the running query.
      def ofRunning = running.filter(_.sparkSession eq session).flatMap(_.normalized.getTagValue(Tag))
      own.orElse(ofRunning).map(new QueryConf(SQLConf.get, _))
    }

  private def firstLink(plan: SparkPlan): Option[LogicalPlan] =
    plan.logicalLink.orElse(plan.children.iterator.flatMap(firstLink).nextOption())

  private def search(node: LogicalPlan): Option[QueryValues] =
    unwrapped(node).getTagValue(Tag).orElse(unwrapped(node).children.iterator.flatMap(search).nextOption())

  @tailrec private def unwrapped(node: LogicalPlan): LogicalPlan = node match {
    case stage: LogicalQueryStage => unwrapped(stage.logicalPlan)
    case other                    => other
  }
}
