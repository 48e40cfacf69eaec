package io.apportion.groups

import io.apportion.decision.Policy
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.SparkPlan

/** Change of the policy for the tasks that read an exchange. Rules of optional packages put it on the exchange. */
private[apportion] object PolicyChange {
  private val CountTag = TreeNodeTag[Policy => Policy]("apportion.policyChange")
  private val ReadTag = TreeNodeTag[Policy => Policy]("apportion.policyChangeOfReads")

  /** The change counts until the shuffle runs, so for its number of partitions only. */
  def put(exchange: SparkPlan, change: Policy => Policy): Unit = exchange.setTagValue(CountTag, change)

  /** The change also counts for the tasks that read the shuffle. */
  def putForReads(exchange: SparkPlan, change: Policy => Policy): Unit = exchange.setTagValue(ReadTag, change)

  def of(group: ExchangeGroup): Policy => Policy = group.leaves.flatMap(on).headOption.getOrElse(identity)

  private def on(leaf: ShuffleLeaf) = leaf.node.getTagValue(CountTag).orElse(leaf.shuffle.getTagValue(ReadTag))
}
