package io.apportion.report

import java.util.{Collections, WeakHashMap}

import io.apportion.rules.CurrentQuery
import org.apache.spark.apportion.ListenerBus
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanExec, AdaptiveSparkPlanHelper}
import org.apache.spark.sql.execution.{QueryExecution, SparkPlan}

/**
 * Numbers the operators of a query's optimized plan before its first stage runs, and makes the plan known. Spark plans stages again
 * from copies of these operators, which keep their numbers.
 */
private[apportion] object OptimizedPlan extends AdaptiveSparkPlanHelper {
  private val Number = TreeNodeTag[Int]("apportion.operator")
  private val announced = Collections.newSetFromMap(new WeakHashMap[QueryExecution, java.lang.Boolean])

  /** Only for a query that runs: its plan is made, if it has not been. */
  def announce(session: SparkSession): Unit =
    for {
      id <- CurrentQuery.current(session)
      query <- CurrentQuery.running(id)
      if announced.synchronized(announced.add(query))
    } {
      val plans = collectWithSubqueries(query.executedPlan) { case plan: AdaptiveSparkPlanExec => plan.initialPlan }
      val operators = plans.flatMap(_.logicalLink).flatMap(withDepth(_, 0))
      operators.iterator.map(_._2).zipWithIndex.foreach { case (operator, i) => operator.setTagValue(Number, i) }
      val sql = query.logical.collectFirst { case node if node.origin.sqlText.isDefined => node.origin.sqlText.get }
      if (operators.nonEmpty) ListenerBus.post(session.sparkContext, QueryEvent.of(id, sql, operators))
    }

  /** Numbers of the operators that a plan was planned from, without those of stages that it reads. */
  def operatorsOf(plan: SparkPlan): Seq[Int] =
    plan.flatMap(_.logicalLink).flatMap(_.getTagValue(Number)).distinct

  private def withDepth(plan: LogicalPlan, depth: Int): Seq[(Int, LogicalPlan)] =
    (depth, plan) +: plan.children.flatMap(withDepth(_, depth + 1))
}
