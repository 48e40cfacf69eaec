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
    val (slots, lost) =
      if (Settings.isObserving(SQLConf.get)) (Cluster.slots(session.sparkContext), 0)
      else standing(Coordination.of(session.sparkContext), query, decided.map(_._1.slotsAskedFor).sum)
    val records = decided.map(_._1.copy(query = query).on(slots, lost))
    val numbered = DecisionLog.of(Executions.owner(query, session)).add(records, retained)
    if (Settings.EventsEnabled.get(SQLConf.get)) {
      val operators = OptimizedPlan.operatorsOf(stage)
      numbered.zip(decided).foreach { case (record, (_, bytes)) =>
        ListenerBus.post(session.sparkContext, DecisionEvent.of(record, bytes, operators))
      }
    }
  }

  /** Slots that are there and that the query has lost, after the coordination knows the tasks of the query's next stage. */
  private def standing(coordination: Coordination, query: Option[Long], tasks: Int): (Int, Int) = {
    query.foreach(coordination.stageHas(_, tasks))
    coordination.standing(query)
  }
}
