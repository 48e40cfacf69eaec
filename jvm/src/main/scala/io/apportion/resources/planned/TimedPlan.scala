package io.apportion.resources.planned

import io.apportion.history.QueryCost
import io.apportion.resources.deadlines.{DeadlinePlan, ListSchedule, QueryCosts, SlotSupply, TaskSpeed}
import io.apportion.settings.{ResourceSettings, Settings}
import org.apache.spark.apportion.ExecutorResources
import org.apache.spark.sql.{Row, SparkSession}
import org.apache.spark.sql.execution.QueryExecution
import org.apache.spark.sql.types.StructType

/**
 * The plan with which a query ends in time: the number of slots, and when each stage runs. Its stages are those of the
 * query's last runs. If it has not run before, they are the planned stages, with their bytes at the speed of the
 * application's tasks.
 */
private[planned] object TimedPlan {

  val schema: StructType = StructType.fromDDL(
    "finish_within DOUBLE, source STRING, slots INT, seconds DOUBLE, in_time BOOLEAN, " +
      "stages ARRAY<STRUCT<stage: INT, reads: ARRAY<INT>, tasks: INT, slots: INT, start: DOUBLE, seconds: DOUBLE>>"
  )

  /** @param within milliseconds within which the query must end */
  def of(session: SparkSession, query: QueryExecution, stages: Seq[PlannedStage], within: Long): Row = {
    val earlier = QueryCosts.of(session, query, query.executedPlan).expected
    val speed = TaskSpeed.inApplication.of(session.sparkContext).bytesPerSecond
    val known = earlier.orElse(PlannedStages.costs(stages, speed).map(QueryCost(_)))
    val source = if (earlier.isDefined) "earlier runs" else if (known.isDefined) "bytes" else "unknown"
    known.fold(Row(within / 1000.0, source, null, null, null, null)) { cost =>
      val plan = DeadlinePlan(within, elapsed = 0, cost).slots(SlotSupply(mostSlots(session)))
      val times = ListSchedule.of(cost.stages, SlotSupply(plan.slots))
      val rows = cost.stages.zip(times).zipWithIndex.map { case ((stage, time), place) =>
        val seconds = (time.end - time.start) / 1000.0
        Row(place, stage.after, stage.tasks, stage.tasks.min(plan.slots), time.start / 1000.0, seconds)
      }
      Row(within / 1000.0, source, plan.slots, plan.millis / 1000.0, plan.inTime, rows)
    }
  }

  private def mostSlots(session: SparkSession): Int = {
    val conf = session.sessionState.conf
    val dynamic = ExecutorResources.dynamicBounds(session.sparkContext).fold(Int.MaxValue)(_._2)
    Some(ResourceSettings.MaxSlots.get(conf))
      .filter(_ != -1)
      .getOrElse(Settings.MaxParallelism.get(conf))
      .min(dynamic)
      .max(1)
  }
}
