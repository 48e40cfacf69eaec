package io.apportion.aqe

import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.SparkPlan

/**
 * Decisions on their way from the rule that makes them to the one that reports them. They lie on the root of the plan, so that
 * they are lost with it if Spark takes the plan back.
 */
private[aqe] object PendingDecisions {

  /** How a group is to be read, or why it is left alone. */
  type Pending = (ExchangeGroup, Either[String, GroupRead])

  private val Tag = TreeNodeTag[Seq[Pending]]("apportion.pendingDecisions")

  def attach(plan: SparkPlan, pending: Seq[Pending]): Unit = plan.setTagValue(Tag, pending)

  /** The decisions on the plan, which are taken off it. */
  def take(plan: SparkPlan): Seq[Pending] = {
    val pending = plan.getTagValue(Tag).getOrElse(Nil)
    plan.unsetTagValue(Tag)
    pending
  }
}
