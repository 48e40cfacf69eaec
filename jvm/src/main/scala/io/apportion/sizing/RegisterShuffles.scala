package io.apportion.sizing

import scala.util.control.NonFatal

import io.apportion.settings.Settings
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, ReturnAnswer}
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}
import org.apache.spark.sql.internal.SQLConf

/**
 * Gives the main plan of a query and its subqueries one [[ShuffleRegistry]]. It is a planner strategy because a strategy sees the
 * query before Spark plans the subqueries; rules for physical plans see one plan at a time. It plans nothing itself.
 */
private[apportion] object RegisterShuffles extends SparkStrategy {

  override def apply(plan: LogicalPlan): Seq[SparkPlan] = {
    plan match {
      case ReturnAnswer(query) if Settings.Enabled.get(SQLConf.get) =>
        try ShuffleRegistry.attach(query)
        catch {
          case NonFatal(failure) => logWarning("Each plan of the query has its own numbers of partitions", failure)
        }
      case _ =>
    }
    Nil
  }
}
