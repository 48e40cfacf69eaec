package io.apportion.groups

import io.apportion.decision.Policy
import org.apache.spark.sql.SparkSession

/**
 * How to decide about a group.
 *
 * @param memoryPerByte bytes of execution memory that the tasks need for one stored byte, if an earlier run shows it
 */
final case class GroupPolicy(policy: Policy, memoryPerByte: Option[Double] = None)

/**
 * What the rules ask code that they do not know, such as hints, writes of files and earlier runs. `ApportionExtension` lists
 * the advisors. Each gets the policy of the one before, so the last one wins.
 */
trait Advisor {
  def advise(group: ExchangeGroup, known: GroupPolicy, session: SparkSession): GroupPolicy
}
