package io.apportion.writes.statements

import io.apportion.groups.ShuffleLeaf
import org.apache.spark.sql.catalyst.plans.QueryPlan
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.SparkPlan

/**
 * Marks the root of an adaptive plan. The tasks of the last stage run it, and Spark's rules for stages do not know which
 * stage is the last one.
 */
private[writes] object QueryRoot {
  private val Tag = TreeNodeTag[Unit]("apportion.queryRoot")

  def mark(plan: SparkPlan): Unit = plan.setTagValue(Tag, ())

  /** Whether the plan of a stage has the root. The root may be a shuffle, which the stage reads. */
  def isIn(plan: SparkPlan): Boolean = plan match {
    case ShuffleLeaf(leaf) => (plan +: leaf.shuffle +: leaf.stage.toSeq).exists(hasTag)
    case _                 => hasTag(plan)
  }

  /** Whether two plans have the same columns. A subquery has a root, too, but not the columns of its query. */
  def sameColumns(one: QueryPlan[_], other: QueryPlan[_]): Boolean =
    one.output.map(_.exprId) == other.output.map(_.exprId)

  private def hasTag(plan: SparkPlan): Boolean = plan.getTagValue(Tag).isDefined
}
