package io.apportion.report

import io.apportion.rules.CurrentQuery
import io.apportion.settings.Settings
import org.apache.spark.apportion.{Cluster, DecisionMetrics, ListenerBus}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.internal.SQLConf

/** Records decisions in the log of the session, and posts them as events. */
private[apportion] final class DecisionReporter(session: SparkSession, sources: Seq[ReportSource]) {

  /**
   * Records the decisions about a stage, and posts an event for each one. Returns the records with their numbers.
   *
   * @param stage   plan of the stage
   * @param decided records of the query that runs in this thread, each with the other fields of its event
   */
  def report(stage: SparkPlan, decided: Seq[(DecisionRecord, EventFields)]): Seq[DecisionRecord] = {
    val query = CurrentQuery.current(session)
    val (slots, lost) = query
      .flatMap(id => sources.flatMap(_.registeredAndLost(session, id)).headOption)
      .getOrElse((Cluster.recentSlots(session.sparkContext), 0))
    val records = decided.map(_._1.copy(query = query).on(slots, lost))
    val numbered = DecisionLog.of(CurrentQuery.owner(query, session)).add(records)
    for (metrics <- DecisionMetrics.ofActive(session.sparkContext); record <- numbered) metrics.decided(record.clamps)
    if (Settings.EventsEnabled.get(SQLConf.get)) {
      val operators = OptimizedPlan.operatorsOf(stage)
      numbered.zip(decided).foreach { case (record, (_, fields)) =>
        ListenerBus.post(session.sparkContext, DecisionEvent.of(record, fields, operators))
      }
    }
    numbered
  }
}
