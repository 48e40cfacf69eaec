package io.apportion.writes

import io.apportion.decision.Policy
import io.apportion.groups.{Advisor, ExchangeGroup, GroupPolicy, ShuffleLeaf}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.SparkPlan

/** Changes of the policy for the tasks that read an exchange, because of the files that the query writes. */
private[apportion] object WriteAdvisor extends Advisor {
  private val CountTag = TreeNodeTag[Policy => Policy]("apportion.policyChange")
  private val ReadTag = TreeNodeTag[Policy => Policy]("apportion.policyChangeOfReads")

  /** The change counts until the shuffle runs, so for its number of partitions only. */
  private[writes] def put(exchange: SparkPlan, change: Policy => Policy): Unit = exchange.setTagValue(CountTag, change)

  /** The change also counts for the tasks that read the shuffle. */
  private[writes] def putForReads(exchange: SparkPlan, change: Policy => Policy): Unit =
    exchange.setTagValue(ReadTag, change)

  override def advise(group: ExchangeGroup, known: GroupPolicy, session: SparkSession): GroupPolicy =
    group.leaves.flatMap(changeOn).headOption.fold(known)(change => known.copy(policy = change(known.policy)))

  private def changeOn(leaf: ShuffleLeaf): Option[Policy => Policy] =
    leaf.node.getTagValue(CountTag).orElse(leaf.shuffle.getTagValue(ReadTag))
}
