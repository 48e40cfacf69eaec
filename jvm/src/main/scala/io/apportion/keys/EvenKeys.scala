package io.apportion.keys

import io.apportion.util.BoundedMap

/**
 * Surrogates of keys that Spark's own hash partitioning spreads evenly. Spark puts a key into the subpartition with the
 * number of its Murmur3 hash modulo the number of subpartitions. If there are few keys, some share a task while other
 * tasks get none. The hash of a BIGINT can be inverted: each hash has 2^32^ surrogates. They are computed, not searched
 * for.
 *
 * @param tasks         1 to [[EvenKeys.MostTasks]]
 * @param subpartitions at least `tasks`; tasks read even ranges of them ([[io.apportion.decision.ranges.Ranges.even]])
 */
final case class EvenKeys(tasks: Int, subpartitions: Int) {

  /** For each task, the state that Murmur3 must have before its last step. */
  @transient private val states: Array[Int] = EvenKeys.states(tasks, subpartitions)

  /** Executors get only the two numbers, and look up or compute the states. */
  private def readResolve(): AnyRef = EvenKeys.of(tasks, subpartitions)
}

object EvenKeys {

  /** Each task takes four bytes in a table. */
  final val MostTasks = 1 << 20

  private val MaxKept = 16

  /** 2^64^ divided by the golden ratio. Its multiples are far from each other. */
  private final val Golden = 0x9e3779b97f4a7c15L

  private val kept = new BoundedMap[(Int, Int), EvenKeys](MaxKept)

  /** The surrogates for these numbers, from a cache. */
  def of(tasks: Int, subpartitions: Int): EvenKeys =
    kept.getOrCompute((tasks, subpartitions))(EvenKeys(tasks, subpartitions))

  /**
   * Surrogate of a key: a BIGINT that Spark puts into the range of task `key mod tasks`. Keys less than `tasks` * 2^32^
   * apart have different surrogates.
   *
   * @param tasks equal to `keys.tasks`; it is a constant in generated code, which makes the division faster
   */
  def surrogate(key: Long, tasks: Int, keys: EvenKeys): Long = {
    val round = Math.floorDiv(key, tasks)
    Murmur3.longOf(keys.states((key - round * tasks).toInt), round.toInt)
  }

  /** Subpartition of a row with this hash. It does not branch on the sign of the hash, which a CPU cannot predict. */
  def subpartitionOf(hash: Int, subpartitions: Int): Int = {
    val remainder = hash % subpartitions
    remainder + ((remainder >> 31) & subpartitions)
  }

  /** Index of the even range that contains a subpartition. */
  def taskOf(subpartition: Int, tasks: Int, subpartitions: Int): Int =
    if (tasks.toLong * subpartitions <= Int.MaxValue) ((subpartition + 1) * tasks - 1) / subpartitions
    else (((subpartition + 1L) * tasks - 1) / subpartitions).toInt

  private def states(tasks: Int, subpartitions: Int): Array[Int] = {
    require(
      1 <= tasks && tasks <= subpartitions && tasks <= MostTasks,
      s"tasks must be from 1 to $MostTasks, and subpartitions at least as many, but there are $tasks tasks and " +
        s"$subpartitions subpartitions"
    )
    // Each task gets a hash of its first subpartition that is far from the hashes of other tasks. With another number
    // of subpartitions, tasks are then distributed like arbitrary keys.
    val bits = Integer.numberOfLeadingZeros(subpartitions - 1) - 1
    Array.tabulate(tasks) { task =>
      val choice = (task * Golden >>> 1) >>> (63 - bits)
      val first = task.toLong * subpartitions / tasks
      Murmur3.stateOf((first + choice * subpartitions).toInt)
    }
  }
}
