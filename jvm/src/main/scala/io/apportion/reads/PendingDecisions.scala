package io.apportion.reads

import io.apportion.groups.{ExchangeGroup, GroupRead}
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.SparkPlan

/**
 * Passes decisions from the rule that makes them to the rule that reports them. They are a tag on the root of the
 * plan, so they disappear with the plan if Spark reverts it.
 */
private[apportion] object PendingDecisions {

  /** Group with its planned read, or with the reason why it stays unchanged. */
  type Pending = (ExchangeGroup, Either[String, GroupRead])

  private val Tag = TreeNodeTag[Seq[Pending]]("apportion.pendingDecisions")

  private val ObservedTag = TreeNodeTag[SparkPlan]("apportion.observedDecisions")

  def attach(plan: SparkPlan, pending: Seq[Pending]): Unit = plan.setTagValue(Tag, pending)

  /** With `mode=observe`, attaches the plan with decisions to the plan that runs instead of it. */
  def attachObserved(plan: SparkPlan, decided: SparkPlan): Unit = plan.setTagValue(ObservedTag, decided)

  /** Removes and returns the plan with decisions that [[attachObserved]] attached. */
  def takeObserved(plan: SparkPlan): Option[SparkPlan] = {
    val decided = plan.getTagValue(ObservedTag)
    plan.unsetTagValue(ObservedTag)
    decided
  }

  /** The decisions on the plan. */
  def on(plan: SparkPlan): Seq[Pending] = plan.getTagValue(Tag).getOrElse(Nil)

  /** Removes and returns the decisions on the plan. */
  def take(plan: SparkPlan): Seq[Pending] = {
    val pending = on(plan)
    plan.unsetTagValue(Tag)
    pending
  }
}
