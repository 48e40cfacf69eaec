package io.apportion.keys

/**
 * Surrogates of keys that Spark's own hash partitioning deals evenly. Spark puts the rows of a key into the subpartition that its
 * Murmur3 hash leaves modulo their number, so that of a few keys some meet in one task while others get none. For a BIGINT that hash
 * can be run backwards: there are surrogates for every subpartition, and they are computed, not searched for.
 */
object EvenKeys {

  /** 2^64^ by the golden ratio: multiples of it lie far from each other. */
  private final val Golden = 0x9e3779b97f4a7c15L

  /**
   * The surrogate of a key: a BIGINT that Spark puts in task `key mod tasks`, if it is hashed into that many subpartitions and
   * tasks read even ranges of them ([[io.apportion.decision.Ranges.even]]). Keys that are less than `tasks` * 2^32^ apart have
   * different surrogates.
   *
   * @param tasks         1 or more
   * @param subpartitions as many as tasks or more
   */
  def surrogate(key: Long, tasks: Int, subpartitions: Int): Long = {
    val round = Math.floorDiv(key, tasks)
    val task = key - round * tasks
    val firstSubpartition = task * subpartitions / tasks
    // One of the hashes that lead there, by the key: hashed into another number of subpartitions keys still fall as any others.
    val hashes = (1L << 31) / subpartitions
    val choice = ((key * Golden) >>> 33) * hashes >>> 31
    Murmur3.longOf((firstSubpartition + choice * subpartitions).toInt, round.toInt)
  }

  /** The number of the even range that a subpartition lies in. */
  def taskOf(subpartition: Int, tasks: Int, subpartitions: Int): Int =
    (((subpartition + 1L) * tasks - 1) / subpartitions).toInt
}
