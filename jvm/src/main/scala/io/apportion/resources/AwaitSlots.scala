package io.apportion.resources

import io.apportion.rules.{CurrentQuery, Guarded}
import org.apache.spark.apportion.WaitingJob
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanExec, QueryStageExec}
import org.apache.spark.sql.execution.command.{ExecutedCommandExec, ExplainCommand}
import org.apache.spark.sql.execution.datasources.v2.V2CommandExec

/**
 * Waits for `resources.minSlots` task slots before a stage starts. By default it neither waits nor looks at the
 * cluster.
 */
case class AwaitSlots(session: SparkSession, isAdaptive: Boolean = true) extends Guarded[SparkPlan] {

  override protected def applyGuarded(plan: SparkPlan): SparkPlan = {
    if (!SlotSettings.neverNeedCoordination(conf) && (isAdaptive || runsTasks(plan)))
      for (query <- CurrentQuery.current(session) if isAdaptive || !isExplained(query)) await(query)
    plan
  }

  override protected def waits: Boolean = true

  override protected def mustThrow(failure: Throwable): Boolean =
    super.mustThrow(failure) || WaitingJob.isCancellation(failure)

  private def await(query: Long): Unit = {
    def settings = SlotSettings.of(conf, session.sparkContext)
    SlotCoordinator.existing(session.sparkContext).filter(_.isTracked(query)) match {
      case Some(coordinator) => coordinator.await(query, settings)
      case None              =>
        val current = settings
        if (current.needsCoordination) SlotCoordinator.of(session.sparkContext).foreach(_.await(query, current))
    }
  }

  /** Whether the execution is an EXPLAIN: it has its own execution id, and plans its query with it. */
  private def isExplained(query: Long): Boolean =
    CurrentQuery.running(query).exists(_.logical.isInstanceOf[ExplainCommand])

  /**
   * Whether a plan that is not adaptive runs tasks. Some commands, and rows that are already in the driver, need none.
   */
  private def runsTasks(plan: SparkPlan): Boolean = plan.collectLeaves().exists {
    case _: AdaptiveSparkPlanExec | _: QueryStageExec                                             => false
    case _: ExecutedCommandExec | _: V2CommandExec | _: LocalTableScanExec | _: CommandResultExec => false
    case _                                                                                        => true
  }
}

object AwaitSlots {

  /**
   * The rule for plans without shuffles and subqueries. Spark does not run these adaptively (`InsertAdaptiveSparkPlan`,
   * 3.5 to 4.2), but calls columnar rules for them when the query has its execution id.
   */
  def columnarRule(session: SparkSession): ColumnarRule = new ColumnarRule {
    override def preColumnarTransitions: Rule[SparkPlan] = AwaitSlots(session, isAdaptive = false)
  }
}
