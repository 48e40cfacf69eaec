package io.apportion.report

import io.apportion.decision.{Policy, ResourceRequirement, ValueSource}
import io.apportion.decision.memory.HeldRows
import io.apportion.groups.ExchangeGroup
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.SparkPlan

/**
 * A decision as it is reported.
 *
 * @param policy     policy that the decision was made with; `None` for an unchanged group
 * @param group      group of shuffles that it is about; `None` for a scan
 * @param held       for each shuffle, the execution memory for one stored byte; empty for an unchanged group
 * @param scanMetric id of the metric `number of output rows` of a scan, which identifies the scan in the plans of
 *                   Spark's events
 */
private[apportion] final case class ReportedDecision(
    record: DecisionRecord,
    policy: Option[Policy],
    group: Option[ExchangeGroup] = None,
    held: Seq[HeldRows] = Nil,
    scanMetric: Option[Long] = None
)

/**
 * What reports ask and tell packages that they do not know: hints, broadcasts, events, task slots and outcomes.
 * `ApportionExtension` lists the sources; the first one that knows a value wins.
 */
private[apportion] trait ReportSource {

  /** What else the reason of a decision says. */
  def remark(group: ExchangeGroup): Option[String] = None

  /** Slots that the stage of a group declares, if the query sets them. */
  def requirement(group: ExchangeGroup): Option[(ResourceRequirement, ValueSource)] = None

  /** Registered slots, and the number of slots that the query has lost; `None` if the query is not tracked. */
  def registeredAndLost(session: SparkSession, query: Long): Option[(Int, Int)] = None

  /** A stage starts that may read shuffles. Its decisions follow, if there are any. */
  def stageStarts(session: SparkSession): Unit = ()

  /**
   * Receives the decisions about a stage before it starts.
   *
   * @param stage plan of the stage
   */
  def decided(session: SparkSession, stage: SparkPlan, decisions: Seq[ReportedDecision]): Unit = ()
}
