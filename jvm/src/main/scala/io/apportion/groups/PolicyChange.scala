package io.apportion.groups

import io.apportion.decision.Policy
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.SparkPlan

/** Change of the policy for the tasks that read an exchange. Rules of optional packages put it on the exchange. */
private[apportion] object PolicyChange {
  private val Tag = TreeNodeTag[Policy => Policy]("apportion.policyChange")

  def put(exchange: SparkPlan, change: Policy => Policy): Unit = exchange.setTagValue(Tag, change)

  def of(group: ExchangeGroup): Policy => Policy =
    group.leaves.flatMap(_.node.getTagValue(Tag)).headOption.getOrElse(identity)
}
