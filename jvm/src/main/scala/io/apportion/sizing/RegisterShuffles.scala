package io.apportion.sizing

import scala.util.control.NonFatal

import io.apportion.settings.Settings
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, ReturnAnswer}
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}
import org.apache.spark.sql.internal.SQLConf

/**
 * Attaches one [[ShuffleRegistry]] to the main plan of a query and its subqueries. It is a planner strategy, because
 * a strategy sees the query before Spark plans the subqueries, while rules for physical plans see one plan at a time.
 * It plans nothing.
 */
private[apportion] object RegisterShuffles extends SparkStrategy {

  override def apply(plan: LogicalPlan): Seq[SparkPlan] = {
    plan match {
      case ReturnAnswer(query) if Settings.Enabled.get(SQLConf.get) =>
        try ShuffleRegistry.attach(query)
        catch {
          case NonFatal(failure) =>
            logWarning("The main plan and the subqueries get separate numbers of shuffle partitions", failure)
        }
      case _ =>
    }
    Nil
  }
}
