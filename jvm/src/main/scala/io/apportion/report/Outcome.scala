package io.apportion.report

import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.expressions.GenericRowWithSchema
import org.apache.spark.sql.types.{IntegerType, LongType, StructType}

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
  def toRow: Row = new GenericRowWithSchema(productIterator.toArray[Any], Outcome.schema)
}

object Outcome {

  /** A column for each field, in the same order. */
  val schema: StructType = new StructType()
    .add("stage", IntegerType)
    .add("spilled_bytes", LongType)
    .add("peak_task_memory", LongType)
    .add("gc_millis", LongType)
    .add("fetch_wait_millis", LongType)
    .add("median_task_millis", LongType)
    .add("longest_task_millis", LongType)
    .add("failed_tasks", IntegerType)
    .add("memory_failures", IntegerType)
}
