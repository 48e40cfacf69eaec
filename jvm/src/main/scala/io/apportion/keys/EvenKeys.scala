package io.apportion.keys

import java.util.{Collections, LinkedHashMap, Map => JMap}

/**
 * Surrogates of keys that Spark's own hash partitioning deals evenly. Spark puts the rows of a key into the subpartition that its
 * Murmur3 hash leaves modulo their number, so that of a few keys some meet in one task while others get none. For a BIGINT that hash
 * can be run backwards: there are 2^32^ surrogates for every hash that one wants, and they are computed, not searched for.
 *
 * @param tasks         1 to [[EvenKeys.MostTasks]]
 * @param subpartitions as many or more, of which tasks read even ranges ([[io.apportion.decision.Ranges.even]])
 */
final case class EvenKeys(tasks: Int, subpartitions: Int) {

  /** For each task, what Murmur3 has to come to before its last step. */
  @transient private val states: Array[Int] = EvenKeys.states(tasks, subpartitions)

  /** Only the numbers are sent to executors. */
  private def readResolve(): AnyRef = EvenKeys.of(tasks, subpartitions)
}

object EvenKeys {

  /** Each takes four bytes in a table. */
  final val MostTasks = 1 << 20

  private val MostKept = 16

  /** 2^64^ by the golden ratio: multiples of it lie far from each other. */
  private final val Golden = 0x9e3779b97f4a7c15L

  private val kept: JMap[(Int, Int), EvenKeys] =
    Collections.synchronizedMap(new LinkedHashMap[(Int, Int), EvenKeys](MostKept, 0.75f, true) {
      override def removeEldestEntry(eldest: JMap.Entry[(Int, Int), EvenKeys]): Boolean = size > MostKept
    })

  /** Those of these numbers, which are kept for some time. */
  def of(tasks: Int, subpartitions: Int): EvenKeys =
    kept.computeIfAbsent((tasks, subpartitions), _ => EvenKeys(tasks, subpartitions))

  /**
   * The surrogate of a key: a BIGINT that Spark puts into the range of task `key mod tasks`. Keys that are less than `tasks` * 2^32^
   * apart have different surrogates.
   *
   * @param tasks those of the keys, a constant in generated code: dividing by it is faster then
   */
  def surrogate(key: Long, tasks: Int, keys: EvenKeys): Long = {
    val round = Math.floorDiv(key, tasks)
    Murmur3.longOf(keys.states((key - round * tasks).toInt), round.toInt)
  }

  /** The subpartition of a row by its hash, without a branch by the sign of that, which nothing foretells. */
  def subpartitionOf(hash: Int, subpartitions: Int): Int = {
    val remainder = hash % subpartitions
    remainder + ((remainder >> 31) & subpartitions)
  }

  /** The number of the even range that a subpartition lies in. */
  def taskOf(subpartition: Int, tasks: Int, subpartitions: Int): Int =
    if (tasks.toLong * subpartitions <= Int.MaxValue) ((subpartition + 1) * tasks - 1) / subpartitions
    else (((subpartition + 1L) * tasks - 1) / subpartitions).toInt

  private def states(tasks: Int, subpartitions: Int): Array[Int] = {
    require(
      1 <= tasks && tasks <= subpartitions && tasks <= MostTasks,
      s"there are $tasks tasks and $subpartitions subpartitions; allowed are 1 to $MostTasks tasks, and as many subpartitions or more"
    )
    // One of the hashes of a task's first subpartition, far from each other's: so tasks fall as any keys where there is another number
    // of subpartitions.
    val bits = Integer.numberOfLeadingZeros(subpartitions - 1) - 1
    Array.tabulate(tasks) { task =>
      val choice = (task * Golden >>> 1) >>> (63 - bits)
      val first = task.toLong * subpartitions / tasks
      Murmur3.stateOf((first + choice * subpartitions).toInt)
    }
  }
}
