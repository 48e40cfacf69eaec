package io.apportion.resources

import scala.util.control.NonFatal

import io.apportion.groups.Advisor
import io.apportion.hints.AssignBlocks
import io.apportion.resources.deadlines.QueryCosts
import io.apportion.resources.planned.PlannedStages
import io.apportion.rules.{CurrentQuery, Guarded}
import org.apache.spark.apportion.WaitingJob
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanExec, QueryStageExec}
import org.apache.spark.sql.execution.command.{ExecutedCommandExec, ExplainCommand}
import org.apache.spark.sql.execution.datasources.v2.V2CommandExec

/**
 * Waits for `resources.minSlots` task slots before a stage starts, and tells the coordinator which stages are left. By
 * default it neither waits nor looks at the cluster.
 */
case class AwaitSlots(session: SparkSession, advisors: Seq[Advisor], isAdaptive: Boolean = true)
    extends Guarded[SparkPlan] {

  override protected def applyGuarded(plan: SparkPlan): SparkPlan = {
    if (isAdaptive || runsTasks(plan))
      for {
        id <- CurrentQuery.current(session)
        query <- CurrentQuery.running(id)
        hinted = AssignBlocks.finishWithin(query.normalized)
        if (hinted.isDefined || !SlotSettings.neverNeedCoordination(conf)) && (isAdaptive || !isExplained(query))
      } await(id, query, plan, hinted)
    plan
  }

  override protected def waits: Boolean = true

  override protected def mustThrow(failure: Throwable): Boolean =
    super.mustThrow(failure) || WaitingJob.isCancellation(failure)

  private def await(id: Long, query: QueryExecution, stage: SparkPlan, hinted: Option[Long]): Unit = {
    def settings = SlotSettings.of(conf, session.sparkContext, hinted)
    // A plan that is not adaptive is planned in this moment.
    def running = if (isAdaptive) query.executedPlan else stage
    def work = quietly(
      QueryCosts.of(session, query, running) -> PlannedStages.ahead(session, running, conf, advisors)
    )
    SlotCoordinator.existing(session.sparkContext).filter(_.isTracked(id)) match {
      case Some(coordinator) => coordinator.await(id, settings, if (isAdaptive) work else None)
      case None              =>
        val current = settings
        if (current.needsCoordination) SlotCoordinator.of(session.sparkContext).foreach(_.await(id, current, work))
    }
  }

  /** A query without an estimate still waits for its minimum. */
  private def quietly[T](work: => T): Option[T] =
    try Some(work)
    catch {
      case failure @ (NonFatal(_) | _: LinkageError | _: StackOverflowError) =>
        logWarning("Cannot estimate the work of a query. Its slots follow its stages.", failure)
        None
    }

  /** Whether the execution is an EXPLAIN: it has its own execution id, and plans its query with it. */
  private def isExplained(query: QueryExecution): Boolean = query.logical.isInstanceOf[ExplainCommand]

  /**
   * Whether a plan that is not adaptive runs tasks. Some commands, and rows that are already in the driver, need none.
   */
  private def runsTasks(plan: SparkPlan): Boolean = plan.collectLeaves().exists {
    case _: AdaptiveSparkPlanExec | _: QueryStageExec                                             => false
    case _: ExecutedCommandExec | _: V2CommandExec | _: LocalTableScanExec | _: CommandResultExec => false
    case _                                                                                        => true
  }
}
