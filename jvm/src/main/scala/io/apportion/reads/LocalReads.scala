package io.apportion.reads

import io.apportion.decision.ranges.Ranges
import io.apportion.groups.Splittable
import io.apportion.rules.Guarded
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive._
import org.apache.spark.sql.execution.exchange.ShuffleOrigin

/**
 * Runs Spark's rule for local shuffle reads again, on the decided reads. The local reads get the decided number of
 * tasks, while Spark's own division rounds that number down to a multiple of the map tasks. With a shuffle manager
 * other than Spark's, this rule adds no local reads to those that Spark made before.
 */
case class LocalReads(session: SparkSession) extends AQEShuffleReadRule with Guarded[SparkPlan] {

  /** Empty, as Spark's own rule selects the shuffles that can be read locally. */
  override protected val supportedShuffleOrigins: Seq[ShuffleOrigin] = Nil

  override protected def applyGuarded(plan: SparkPlan): SparkPlan =
    if (Splittable.whyNoMapRanges(conf).isDefined) plan else readLocally(plan)

  private def readLocally(plan: SparkPlan): SparkPlan = {
    val decidedTasks = plan.collect {
      case read @ AQEShuffleReadExec(stage: ShuffleQueryStageExec, specs) if !read.isLocalRead => stage.id -> specs.size
    }.toMap
    val local = OptimizeShuffleWithLocalRead(plan)
    val divided = local.transformUp {
      case read @ AQEShuffleReadExec(stage: ShuffleQueryStageExec, specs)
          if read.isLocalRead && decidedTasks.get(stage.id).exists(_ != specs.size) =>
        AQEShuffleReadExec(
          stage,
          LocalReads.divide(stage.shuffle.numMappers, stage.shuffle.numPartitions, decidedTasks(stage.id))
        )
    }
    divided.copyTagsFrom(plan)
    divided
  }
}

object LocalReads {

  /**
   * Specs of `tasks` local reads. Each task reads a run of whole map outputs. If there are more tasks than map
   * outputs, it reads a part of one map output.
   */
  def divide(mapTasks: Int, subpartitions: Int, tasks: Int): Seq[ShufflePartitionSpec] =
    if (tasks <= mapTasks)
      parts(mapTasks, tasks).map { case (start, end) => CoalescedMapperPartitionSpec(start, end, subpartitions) }
    else
      parts(tasks, mapTasks).zipWithIndex.flatMap { case ((first, last), mapTask) =>
        parts(subpartitions, last - first).map { case (start, end) => PartialMapperPartitionSpec(mapTask, start, end) }
      }

  private def parts(n: Int, count: Int): Seq[(Int, Int)] = Ranges.even(n, count).toSeq
}
