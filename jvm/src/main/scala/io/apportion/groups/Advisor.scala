package io.apportion.groups

import io.apportion.decision.Policy
import io.apportion.decision.memory.HeldRows
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.SparkPlan

/**
 * How to decide about a group.
 *
 * @param memoryPerByte bytes of execution memory that the tasks need for one stored byte, if an earlier run shows it
 */
final case class GroupPolicy(policy: Policy, memoryPerByte: Option[Double] = None)

/**
 * What the rules ask code that they do not know, such as hints, writes of files, earlier runs and the memory of operators.
 * `ApportionExtension` lists the advisors. Each gets the policy of the one before, so the last one wins.
 */
trait Advisor {
  def advise(group: ExchangeGroup, known: GroupPolicy, session: SparkSession): GroupPolicy = known

  /** Execution memory for one stored byte of each finished shuffle of a group. The first advisor that knows it wins. */
  def heldRows(group: ExchangeGroup): Option[Seq[HeldRows]] = None

  /** Bytes of the rows of an exchange that fit this execution memory of the tasks that read them in a group. */
  def rowBytesIn(memory: Long, group: ExchangeGroup, exchange: SparkPlan): Option[Long] = None
}
