package io.apportion.report

import io.apportion.decision.{ResourceRequirement, ValueSource}
import io.apportion.groups.ExchangeGroup
import org.apache.spark.sql.SparkSession

/**
 * What reports ask packages that they do not know: hints, broadcasts, task slots and outcomes. `ApportionExtension` lists
 * the sources; the first one that knows a value wins.
 */
trait ReportSource {

  /** What else the reason of a decision says. */
  def remark(group: ExchangeGroup): Option[String] = None

  /** Slots that the stage of a group declares, if the query sets them. */
  def requirement(group: ExchangeGroup): Option[(ResourceRequirement, ValueSource)] = None

  /** Registered slots, and the number of slots that the query has lost; `None` if the query is not tracked. */
  def registeredAndLost(session: SparkSession, query: Long): Option[(Int, Int)] = None

  /** Receives the decisions about a stage before it starts, each with its group; scans have no groups. */
  def decided(session: SparkSession, records: Seq[DecisionRecord], groups: Seq[ExchangeGroup]): Unit = ()
}
