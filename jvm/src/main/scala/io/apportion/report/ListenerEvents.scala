package io.apportion.report

import java.util.{Collections, WeakHashMap}

import io.apportion.history.QueryFingerprint
import io.apportion.rules.CurrentQuery
import io.apportion.settings.Settings
import org.apache.spark.apportion.ListenerBus
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanExec, AdaptiveSparkPlanHelper}
import org.apache.spark.sql.execution.{QueryExecution, SparkPlan}
import org.apache.spark.sql.internal.SQLConf

/**
 * Posts queries and decisions to Spark's listener bus. The operators of a query's optimized plan get numbers before its
 * first stage runs. Spark plans stages again from copies of these operators. The copies keep the numbers, which are tags.
 */
private[apportion] object ListenerEvents extends AdaptiveSparkPlanHelper with ReportSource {
  private val Number = TreeNodeTag[Int]("apportion.operator")
  private val announced = Collections.newSetFromMap(new WeakHashMap[QueryExecution, java.lang.Boolean])

  /**
   * Posts the plan of the query that runs in this thread, once per query. Makes the executed plan if necessary, but not
   * while a rule of the query's optimizer runs another query.
   */
  override def stageStarts(session: SparkSession): Unit =
    for {
      id <- CurrentQuery.current(session) if isEnabled
      query <- CurrentQuery.running(id)
      if CurrentQuery.optimizedPlan(query).isDefined && announced.synchronized(announced.add(query))
    } {
      val plans = collectWithSubqueries(query.executedPlan) { case plan: AdaptiveSparkPlanExec => plan.initialPlan }
      val operators = plans.flatMap(_.logicalLink).flatMap(withDepth(_, 0))
      operators.iterator.map(_._2).zipWithIndex.foreach { case (operator, i) => operator.setTagValue(Number, i) }
      val sql = query.logical.collectFirst { case node if node.origin.sqlText.isDefined => node.origin.sqlText.get }
      def fingerprint = QueryFingerprint.of(query.commandExecuted)
      if (operators.nonEmpty) ListenerBus.post(session.sparkContext, QueryEvent.of(id, sql, fingerprint, operators))
    }

  override def decided(session: SparkSession, stage: SparkPlan, decisions: Seq[ReportedDecision]): Unit =
    if (isEnabled) {
      // Operators that the stage was planned from, without the operators of stages that it reads
      val operators = stage.flatMap(_.logicalLink).flatMap(_.getTagValue(Number)).distinct
      decisions.foreach { decision =>
        ListenerBus.post(session.sparkContext, DecisionEvent.of(decision, ShuffleFields.of(decision), operators))
      }
    }

  private def isEnabled: Boolean = Settings.EventsEnabled.get(SQLConf.get)

  private def withDepth(plan: LogicalPlan, depth: Int): Seq[(Int, LogicalPlan)] =
    (depth, plan) +: plan.children.flatMap(withDepth(_, depth + 1))
}
