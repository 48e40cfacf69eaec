package io.apportion.decision

import io.apportion.decision.ranges.PowersOfTwo

/**
 * How many partitions Spark gives a shuffle, and how it writes them.
 *
 * @param partitions  `spark.sql.shuffle.partitions`, or the initial number of Spark's coalescing where that is set
 * @param bypassUpTo  `spark.shuffle.sort.bypassMergeThreshold`: up to so many partitions each map task writes a file for each
 *                    partition and then joins these files
 * @param exactSizesUpTo `spark.shuffle.minNumPartitionsToHighlyCompress`: up to so many partitions Spark keeps the bytes of each
 */
final case class ShuffleDefaults(partitions: Int, bypassUpTo: Int = 200, exactSizesUpTo: Int = 2000)

/**
 * The number of partitions of a shuffle, N. It is set before the shuffle runs and cannot be changed afterwards. Too many partitions
 * cost little; too few can ruin the query. So N is lower than Spark's only if the upper end of the estimate needs no more, and higher only
 * as far as the lower end needs it.
 */
object SubpartitionFormula {

  /** A shuffle is not raised above this, as every map task writes that many blocks. */
  val Most = 32768

  /** Partitions for each task that the upper end of an estimate asks for. */
  private val Headroom = 2L

  /** Balanced ranges are cut between partitions, so more partitions make the ranges more even. */
  private val BalancedHeadroom = 8L

  /** An inexact size of small partitions is worth it from so many times the number that has exact sizes. */
  private val WorthInexactSizes = 2L

  /**
   * N for shuffles that are read together: a power of two, unless a parallelism is set or no power of two fits.
   *
   * @param bytes    of all shuffles together
   * @param mapTasks likely tasks that write them
   */
  def of(bytes: ByteInterval, mapTasks: Long, defaults: ShuffleDefaults, policy: Policy): Int =
    policy.parallelism match {
      // The stage has this parallelism, whatever the bytes are.
      case Some(tasks) =>
        (if (policy.balanced) PowersOfTwo.up(tasks * BalancedHeadroom) else tasks.toLong).min(Most).toInt
      case None =>
        val affordable = PowersOfTwo.down(policy.maxBlocksPerShuffle / mapTasks.max(1)).max(1)
        def ifAffordable(n: Long, otherwise: Long) = if (n <= affordable) n else otherwise
        val sparks = ifAffordable(raised(defaults).toLong, defaults.partitions.min(Most).toLong)
        val headroom = if (policy.balanced) BalancedHeadroom else Headroom
        val enough =
          if (bytes.isBounded) PowersOfTwo.up(tasks(bytes.high, policy).min(Most) * headroom)
          else ByteInterval.Unbounded
        val asked = PowersOfTwo.up(tasks(bytes.low, policy).min(Most) * (if (policy.balanced) BalancedHeadroom else 1))
        val wanted = withExactSizes(enough.min(sparks).max(asked.min(affordable)), sparks, defaults)
        ifAffordable(withoutBypass(wanted, defaults), wanted)
          .min(policy.upperBound.toLong)
          .min(Most)
          .toInt
          .max(least(policy))
    }

  /** Spark's own number, raised to a power of two if sizes stay as exact as they are under Spark. */
  def raised(defaults: ShuffleDefaults): Int = {
    val up = PowersOfTwo.up(defaults.partitions.toLong.min(Most))
    val losesExactSizes = defaults.partitions <= defaults.exactSizesUpTo && up > defaults.exactSizesUpTo
    if (losesExactSizes) defaults.partitions else up.toInt
  }

  /** Where nothing is estimated: Spark's own number, raised, and at least the tasks that the policy asks for. */
  def unestimated(defaults: ShuffleDefaults, policy: Policy): Int =
    withoutBypass(raised(defaults).toLong, defaults).toInt.max(least(policy))

  /**
   * How many subpartitions would have bytes if the keys of these had been hashed over `n`, which is not more than there are: exact
   * if `n` divides their number, and else what is to be expected if each of those that have bytes has one key.
   */
  def filled(bytes: Array[Long], n: Int): Double =
    if (bytes.length % n == 0) (0 until n).count(i => (i until bytes.length by n).exists(bytes(_) > 0)).toDouble
    else n * (1 - math.pow(1 - 1.0 / n, bytes.count(_ > 0).toDouble))

  /** What is needed for the tasks that somebody asks for. */
  def least(policy: Policy): Int = policy.parallelism.getOrElse(policy.lowerBound).min(Most)

  /** Tasks for so many bytes: never fewer than the target size needs, and those that the policy adds. */
  private def tasks(bytes: Long, policy: Policy): Long =
    Decider.parallelism(bytes, policy).toLong.max((bytes - 1) / policy.dataVolumePerTask + 1)

  /** Above the limit Spark knows only the average size of small partitions, so that skew is not seen. */
  private def withExactSizes(n: Long, sparks: Long, defaults: ShuffleDefaults): Long = {
    val limit = defaults.exactSizesUpTo.toLong
    if (n > limit && n <= limit * WorthInexactSizes && sparks <= limit) PowersOfTwo.down(limit).max(sparks)
    else n
  }

  /**
   * Just below its limit the writer with a file for each partition is slowest: measured on TPC-H at scale 1, 256 partitions were
   * written faster than 128 or 200 (`python/measurements/partition_counts.py`).
   */
  private def withoutBypass(n: Long, defaults: ShuffleDefaults): Long =
    if (n <= defaults.bypassUpTo && 2 * n > defaults.bypassUpTo && n >= SlowBypass)
      PowersOfTwo.up(defaults.bypassUpTo + 1L)
    else n

  /** Below this the number of files does not matter. */
  private val SlowBypass = 100
}
