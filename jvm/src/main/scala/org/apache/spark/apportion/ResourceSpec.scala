package org.apache.spark.apportion

/**
 * Resources of one task slot: its share of an executor.
 *
 * @param cores         CPU cores of a task
 * @param memoryBytes   bytes of heap
 * @param overheadBytes bytes of memory outside the heap
 * @param custom        amounts of other resources, such as `gpu`, by name
 */
final case class ResourceSpec(
    cores: Double = 1,
    memoryBytes: Long = 0,
    overheadBytes: Long = 0,
    custom: Map[String, Double] = Map.empty
) {
  def +(other: ResourceSpec): ResourceSpec = ResourceSpec(
    cores + other.cores,
    Math.addExact(memoryBytes, other.memoryBytes),
    Math.addExact(overheadBytes, other.overheadBytes),
    custom ++ other.custom.map { case (name, amount) => name -> (custom.getOrElse(name, 0.0) + amount) }
  )
}
