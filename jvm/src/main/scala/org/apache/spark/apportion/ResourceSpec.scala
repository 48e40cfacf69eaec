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
  require(cores > 0, s"cores is $cores; it must be above 0")
  require(
    memoryBytes >= 0 && overheadBytes >= 0,
    s"memoryBytes is $memoryBytes and overheadBytes is $overheadBytes; both must be 0 or more"
  )
  require(custom.values.forall(_ >= 0), s"custom is $custom; each amount must be 0 or more")

  def +(other: ResourceSpec): ResourceSpec = ResourceSpec(
    cores + other.cores,
    Math.addExact(memoryBytes, other.memoryBytes),
    Math.addExact(overheadBytes, other.overheadBytes),
    (custom.keySet ++ other.custom.keySet)
      .map(name => name -> (custom.getOrElse(name, 0.0) + other.custom.getOrElse(name, 0.0)))
      .toMap
  )
}
