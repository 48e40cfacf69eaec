package io.apportion.report

import io.apportion.conf.Settings
import io.apportion.resources.Coordination
import org.apache.spark.apportion.{Cluster, ListenerBus}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.internal.SQLConf

/** Makes decisions known: to the session that asks for them, and to whoever listens to Spark's events. */
private[apportion] object Decisions {

  /**
   * @param stage   what the stage runs, which the decisions are about
   * @param decided records of the query that runs in this thread, each with the bytes of its shuffles' subpartitions
   */
  def report(session: SparkSession, stage: SparkPlan, decided: Seq[(DecisionRecord, Seq[Array[Long]])]): Unit = {
    val query = Executions.current(session)
    val retained = Settings.RetainedDecisions.get(SQLConf.get)
    val coordination = Coordination.existing(session.sparkContext)
    for (coordinated <- coordination; id <- query) coordinated.stageHas(id, decided.map(_._1.slotsAskedFor).sum)
    val standing = for (coordinated <- coordination; id <- query; found <- coordinated.standing(id)) yield found
    val (slots, lost) = standing.getOrElse((Cluster.recentSlots(session.sparkContext), 0))
    val records = decided.map(_._1.copy(query = query).on(slots, lost))
    val numbered = DecisionLog.of(Executions.owner(query, session)).add(records, retained)
    if (Settings.EventsEnabled.get(SQLConf.get)) {
      val operators = OptimizedPlan.operatorsOf(stage)
      numbered.zip(decided).foreach { case (record, (_, bytes)) =>
        ListenerBus.post(session.sparkContext, DecisionEvent.of(record, bytes, operators))
      }
    }
  }
}
