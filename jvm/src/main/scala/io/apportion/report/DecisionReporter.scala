package io.apportion.report

import io.apportion.rules.CurrentQuery
import org.apache.spark.apportion.{Cluster, DecisionMetrics}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.SparkPlan

/** Records decisions in the log of the session, and tells the sources of reports. */
private[apportion] final class DecisionReporter(session: SparkSession, sources: Seq[ReportSource]) {

  /**
   * Reports the decisions about a stage. Returns their records with the numbers that they have in the log.
   *
   * @param stage   plan of the stage
   * @param decided decisions of the query that runs in this thread
   */
  def report(stage: SparkPlan, decided: Seq[ReportedDecision]): Seq[DecisionRecord] = {
    val query = CurrentQuery.current(session)
    val (slots, lost) = query
      .flatMap(id => sources.flatMap(_.registeredAndLost(session, id)).headOption)
      .getOrElse((Cluster.recentSlots(session.sparkContext), 0))
    val records = DecisionLog.ofQuery(query, session).add(decided.map(_.record.copy(query = query).on(slots, lost)))
    for (metrics <- DecisionMetrics.ofActive(session.sparkContext); record <- records) metrics.decided(record.clamps)
    val numbered = decided.zip(records).map { case (decision, record) => decision.copy(record = record) }
    sources.foreach(_.decided(session, stage, numbered))
    records
  }
}
