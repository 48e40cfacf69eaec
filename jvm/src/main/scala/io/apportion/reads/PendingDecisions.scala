package io.apportion.reads

import io.apportion.groups.{ExchangeGroup, GroupRead}
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.SparkPlan

/**
 * Decisions on their way from the rule that makes them to the one that reports them. They lie on the root of the plan, so that
 * they are lost with it if Spark takes the plan back.
 */
private[apportion] object PendingDecisions {

  /** How a group is to be read, or why it is left alone. */
  type Pending = (ExchangeGroup, Either[String, GroupRead])

  private val Tag = TreeNodeTag[Seq[Pending]]("apportion.pendingDecisions")

  private val ObservedTag = TreeNodeTag[SparkPlan]("apportion.observedDecisions")

  def attach(plan: SparkPlan, pending: Seq[Pending]): Unit = plan.setTagValue(Tag, pending)

  /** Puts a plan with decisions on the plan that runs in its place, in the mode observe. */
  def attachObserved(plan: SparkPlan, decided: SparkPlan): Unit = plan.setTagValue(ObservedTag, decided)

  /** The plan that would have run with the decisions, which is taken off the plan. */
  def takeObserved(plan: SparkPlan): Option[SparkPlan] = {
    val decided = plan.getTagValue(ObservedTag)
    plan.unsetTagValue(ObservedTag)
    decided
  }

  def areOn(plan: SparkPlan): Boolean = plan.getTagValue(Tag).isDefined

  /** The decisions on the plan, which are taken off it. */
  def take(plan: SparkPlan): Seq[Pending] = {
    val pending = plan.getTagValue(Tag).getOrElse(Nil)
    plan.unsetTagValue(Tag)
    pending
  }
}
