package org.apache.spark.sql.apportion

import scala.annotation.tailrec

import io.apportion.decision.ValueSource
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.catalyst.trees.TreePattern.PLAN_EXPRESSION
import org.apache.spark.sql.execution.adaptive.LogicalQueryStage
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.internal.SQLConf

/**
 * Values of settings that apply to one query, in place of those of its session.
 *
 * @param values  values by key
 * @param sources sources by key
 */
final case class QueryValues(values: Map[String, String], sources: Map[String, ValueSource]) {

  /** A conf with these values. */
  def over(parent: SQLConf): SQLConf =
    new ConfOverlay(ConfOverlay.settings(parent, values)) with QueryConf {
      override def sourceOf(key: String): Option[ValueSource] = sources.get(key)
    }
}

object QueryValues {
  private val Tag = TreeNodeTag[QueryValues]("apportion.queryValues")

  /** Sets the values of a query on its nodes, which no other query may share. */
  def put(plan: LogicalPlan, query: QueryValues): Unit = {
    QueryConf.findBy(confOf)
    plan.foreach { node =>
      node.setTagValue(Tag, query)
      if (node.containsPattern(PLAN_EXPRESSION)) node.expressions.foreach(_.foreach {
        case subquery: SubqueryExpression => put(subquery.plan, query)
        case _                            =>
      })
    }
  }

  /** The conf for the query with this logical plan. */
  def confAtRoot(plan: LogicalPlan): Option[SQLConf] = plan.getTagValue(Tag).map(_.over(SQLConf.get))

  /**
   * The nodes of the plan lead to the values. They count first, because Spark plans some queries inside another one,
   * such as the query of an EXPLAIN. The optimizer may have dropped all tagged nodes, so the running query counts next.
   */
  private val confOf: QueryConf.Finder = (plan, session, running) => {
    val own = plan match {
      case physical: SparkPlan  => firstLink(physical).flatMap(search)
      case logical: LogicalPlan => search(logical)
      case _                    => None
    }
    // Spark plans cached tables in a clone of the session. They are not part of the running query.
    def ofRunning = running().filter(_.sparkSession eq session).flatMap(_.normalized.getTagValue(Tag))
    own.orElse(ofRunning).map(_.over(SQLConf.get))
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
