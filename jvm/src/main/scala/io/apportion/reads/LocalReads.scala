package io.apportion.reads

import io.apportion.decision.ranges.Ranges
import io.apportion.groups.Splittable
import io.apportion.rules.Guarded
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.{
  CoalescedMapperPartitionSpec,
  PartialMapperPartitionSpec,
  ShufflePartitionSpec,
  SparkPlan
}
import org.apache.spark.sql.execution.adaptive._
import org.apache.spark.sql.execution.exchange.ShuffleOrigin

/**
 * Lets Spark's local read rule run again over what was decided, and gives the local reads the decided number of tasks: Spark's
 * own division rounds it down to a multiple of the map tasks. With another shuffle manager than Spark's, only the local reads stay
 * that Spark made before.
 */
case class LocalReads(session: SparkSession) extends AQEShuffleReadRule with Guarded[SparkPlan] {

  /** Spark's rule says which shuffles can be read locally. */
  override protected val supportedShuffleOrigins: Seq[ShuffleOrigin] = Nil

  override protected def applyGuarded(plan: SparkPlan): SparkPlan =
    if (Splittable.otherManager(conf).isDefined) plan else readLocally(plan)

  private def readLocally(plan: SparkPlan): SparkPlan = {
    val decided = plan.collect {
      case read @ AQEShuffleReadExec(stage: ShuffleQueryStageExec, specs) if !read.isLocalRead => stage.id -> specs.size
    }.toMap
    val local = OptimizeShuffleWithLocalRead(plan)
    val divided = local.transformUp {
      case read @ AQEShuffleReadExec(stage: ShuffleQueryStageExec, specs)
          if read.isLocalRead && decided.get(stage.id).exists(_ != specs.size) =>
        AQEShuffleReadExec(
          stage,
          LocalReads.divide(stage.shuffle.numMappers, stage.shuffle.numPartitions, decided(stage.id))
        )
    }
    divided.copyTagsFrom(plan)
    divided
  }
}

object LocalReads {

  /** `tasks` local reads of a shuffle: runs of whole map outputs, or parts of one map output where there are more tasks than those. */
  def divide(mapTasks: Int, subpartitions: Int, tasks: Int): Seq[ShufflePartitionSpec] =
    if (tasks <= mapTasks)
      parts(mapTasks, tasks).map { case (start, end) => CoalescedMapperPartitionSpec(start, end, subpartitions) }
    else
      parts(tasks, mapTasks).zipWithIndex.flatMap { case ((first, last), mapTask) =>
        parts(subpartitions, last - first).map { case (start, end) => PartialMapperPartitionSpec(mapTask, start, end) }
      }

  private def parts(n: Int, count: Int): Seq[(Int, Int)] = Ranges.even(n, count).toSeq
}
