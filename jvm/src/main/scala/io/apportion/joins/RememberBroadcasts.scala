package io.apportion.joins

import io.apportion.history.{History, Run}
import io.apportion.memory.BroadcastMemory
import io.apportion.rules.Guarded
import org.apache.spark.apportion.ExecutorResources
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.BroadcastQueryStageExec

/** Adds the sizes of broadcasts to the history, for [[DemoteBroadcasts]] in the next run of the query. */
case class RememberBroadcasts(session: SparkSession) extends Guarded[SparkPlan] {

  override protected def applyGuarded(plan: SparkPlan): SparkPlan = {
    if (History.of(session).isDefined) {
      val known = KnownBroadcasts.of(session)
      lazy val heaps = ExecutorResources.heaps(session.sparkContext)
      plan.foreach {
        case stage: BroadcastQueryStageExec if stage.isMaterialized =>
          // The history does not predict more growth. Most tables stay small, and need no entry.
          for (
            bytes <- KnownBroadcasts.tableBytes(stage)
            if BroadcastMemory.tooSmall((bytes * Run.MaxGrowth).toLong, others = 0, heaps).isDefined
          ) known.remember(stage, bytes)
        case _ =>
      }
    }
    plan
  }

  override protected def applyObserved(plan: SparkPlan): SparkPlan = applyGuarded(plan)
}
