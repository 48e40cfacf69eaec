package io.apportion.report

import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.expressions.GenericRowWithSchema
import org.apache.spark.sql.types.{IntegerType, LongType, StructField, StructType}

/**
 * What happened when the tasks of a decision ran.
 *
 * @param stage             id of the Spark stage
 * @param spilledBytes      bytes that the tasks spilled to disk
 * @param peakTaskMemory    most bytes of execution memory that operators of one task had
 * @param gcMillis          garbage collection of all tasks
 * @param fetchWaitMillis   time that all tasks waited for shuffle blocks
 * @param medianTaskMillis  median run time of a task
 * @param longestTaskMillis longest run time of a task
 * @param failedTasks       attempts of tasks that failed
 * @param memoryFailures    attempts of tasks that ran out of memory
 */
final case class Outcome(
    stage: Int,
    spilledBytes: Long,
    peakTaskMemory: Long,
    gcMillis: Long,
    fetchWaitMillis: Long,
    medianTaskMillis: Long,
    longestTaskMillis: Long,
    failedTasks: Int,
    memoryFailures: Int
) {

  /** The outcome as a row of [[Outcome.schema]]. */
  def toRow: Row =
    new GenericRowWithSchema(Outcome.columns.map { case (_, value) => value(this) }.toArray[Any], Outcome.schema)
}

object Outcome {
  private val columns: Seq[(StructField, Outcome => Any)] = Seq(
    (StructField("stage", IntegerType), _.stage),
    (StructField("spilled_bytes", LongType), _.spilledBytes),
    (StructField("peak_task_memory", LongType), _.peakTaskMemory),
    (StructField("gc_millis", LongType), _.gcMillis),
    (StructField("fetch_wait_millis", LongType), _.fetchWaitMillis),
    (StructField("median_task_millis", LongType), _.medianTaskMillis),
    (StructField("longest_task_millis", LongType), _.longestTaskMillis),
    (StructField("failed_tasks", IntegerType), _.failedTasks),
    (StructField("memory_failures", IntegerType), _.memoryFailures)
  )

  val schema: StructType = StructType(columns.map(_._1))
}
