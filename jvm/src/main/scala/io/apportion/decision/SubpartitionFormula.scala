package io.apportion.decision

import io.apportion.decision.ranges.PowersOfTwo

/**
 * Spark's own settings for the partitions of a shuffle.
 *
 * @param partitions     `spark.sql.shuffle.partitions`, or the initial number of Spark's coalescing if that is set
 * @param bypassUpTo     `spark.shuffle.sort.bypassMergeThreshold`: up to this number of partitions, each map task
 *                       writes one file per partition and then joins the files
 * @param exactSizesUpTo `spark.shuffle.minNumPartitionsToHighlyCompress`: up to this number of partitions, Spark
 *                       keeps the size of each partition
 */
final case class ShuffleDefaults(partitions: Int, bypassUpTo: Int = 200, exactSizesUpTo: Int = 2000)

/**
 * Computes N, the number of partitions of a shuffle, from an estimate of its bytes. N is set before the shuffle runs
 * and cannot change afterwards. Too many partitions cost little, but too few can ruin the query. So N is lower than
 * Spark's number only if that suffices for the upper end of the estimate, and higher only as far as the lower end
 * needs it.
 */
object SubpartitionFormula {

  /** Maximum N, as every map task writes N blocks. */
  val Most = 32768

  /** Number of partitions for each task that the upper end of an estimate needs. */
  private val Headroom = 2L

  /** The same for balanced ranges. Their ends lie between partitions, so more partitions make them more even. */
  private val BalancedHeadroom = 8L

  /** Multiple of `exactSizesUpTo` from which more partitions are worth the loss of exact sizes. */
  private val WorthInexactSizes = 2L

  /**
   * N for shuffles that are read together: a power of two, unless a parallelism is set or no power of two fits.
   *
   * @param bytes    bytes of all these shuffles
   * @param mapTasks likely number of tasks that write these shuffles
   * @param held     bytes of execution memory for the rows of all these shuffles, in the tasks that read them
   * @param written  likely bytes of the rows that one map task writes
   * @param rows     likely number of these rows
   */
  def of(
      bytes: ByteInterval,
      mapTasks: Long,
      defaults: ShuffleDefaults,
      policy: Policy,
      held: ByteInterval = ByteInterval.Zero,
      written: Long = 0,
      rows: Double = 0
  ): Int =
    policy.parallelism match {
      // The stage has this parallelism for any number of bytes.
      case Some(tasks) =>
        (if (policy.balanced) PowersOfTwo.up(tasks * BalancedHeadroom) else tasks.toLong).min(Most).toInt
      case None =>
        val affordable = PowersOfTwo.down(policy.maxBlocksPerShuffle / mapTasks.max(1)).max(1)
        def ifAffordable(n: Long, otherwise: Long) = if (n <= affordable) n else otherwise
        val sparkNumber = ifAffordable(raised(defaults).toLong, defaults.partitions.min(Most).toLong)
        val headroom = if (policy.balanced) BalancedHeadroom else Headroom
        val sufficient =
          if (bytes.isBounded && held.isBounded)
            PowersOfTwo.up(tasks(bytes.high, held.high, policy).min(Most) * headroom)
          else ByteInterval.Unbounded
        val needed =
          PowersOfTwo.up(tasks(bytes.low, held.low, policy).min(Most) * (if (policy.balanced) BalancedHeadroom else 1))
        val number = withExactSizes(sufficient.min(sparkNumber).max(needed.min(affordable)), sparkNumber, defaults)
        ifAffordable(withoutBypass(number, defaults), number)
          .min(withoutSort(needed, written, rows, defaults, policy))
          .min(policy.upperBound.toLong)
          .min(Most)
          .toInt
          .max(minimum(policy))
    }

  /** Spark's own number, raised to a power of two unless Spark would then no longer keep exact sizes. */
  def raised(defaults: ShuffleDefaults): Int = {
    val up = PowersOfTwo.up(defaults.partitions.toLong.min(Most))
    val losesExactSizes = defaults.partitions <= defaults.exactSizesUpTo && up > defaults.exactSizesUpTo
    if (losesExactSizes) defaults.partitions else up.toInt
  }

  /** N without an estimate: Spark's own number, raised to a power of two, and at least [[minimum]]. */
  def unestimated(defaults: ShuffleDefaults, policy: Policy): Int =
    withoutBypass(raised(defaults).toLong, defaults).toInt.max(minimum(policy))

  /**
   * Number of non-empty subpartitions if the same keys were hashed into `n` subpartitions. The result is exact if `n`
   * divides the current number. Otherwise it is the expected number if each non-empty subpartition has one key.
   *
   * @param bytes bytes of each current subpartition
   * @param n     at most the current number of subpartitions
   */
  def filled(bytes: Array[Long], n: Int): Double =
    if (bytes.length % n == 0) (0 until n).count(i => (i until bytes.length by n).exists(bytes(_) > 0)).toDouble
    else n * (1 - math.pow(1 - 1.0 / n, bytes.count(_ > 0).toDouble))

  /** Minimum N for the parallelism, or for the minimum parallelism, of the policy. */
  def minimum(policy: Policy): Int = policy.parallelism.getOrElse(policy.lowerBound).min(Most)

  /**
   * Number of tasks for `bytes`, limits of the policy included, but never fewer than the target size per task and the
   * memory of a task need.
   */
  private def tasks(bytes: Long, held: Long, policy: Policy): Long =
    Decider
      .parallelism(bytes, policy)
      .toLong
      .max((bytes - 1) / policy.dataVolumePerTask + 1)
      .max(policy.taskMemory.fold(0L)(memory => (held - 1) / memory + 1))

  /**
   * Keeps N at the limit for exact sizes: above it, Spark only knows the average size of small partitions, which
   * hides skew.
   */
  private def withExactSizes(n: Long, sparkNumber: Long, defaults: ShuffleDefaults): Long = {
    val limit = defaults.exactSizesUpTo.toLong
    if (n > limit && n <= limit * WorthInexactSizes && sparkNumber <= limit) PowersOfTwo.down(limit).max(sparkNumber)
    else n
  }

  /**
   * Raises N above `bypassUpTo` if it is just below. Files are what most map tasks spend their time on there: with one
   * for each of 200 partitions, a map task of few rows takes four times as long as with 256 in one file.
   */
  private def withoutBypass(n: Long, defaults: ShuffleDefaults): Long =
    if (n <= defaults.bypassUpTo && 2 * n > defaults.bypassUpTo && n >= SlowBypass)
      PowersOfTwo.up(defaults.bypassUpTo + 1L)
    else n

  /**
   * Maximum N so that large map tasks do not sort where Spark's would not (`SortShuffleManager.registerShuffle`). Above
   * `bypassUpTo`, the writer sorts all rows of a map task in its memory, and spills them if they do not fit.
   *
   * @param needed N that the tasks need which read the shuffle
   */
  private def withoutSort(needed: Long, written: Long, rows: Double, defaults: ShuffleDefaults, policy: Policy): Long =
    if (defaults.partitions > defaults.bypassUpTo) Most.toLong
    else if (policy.taskMemory.exists(written > _)) needed.max(PowersOfTwo.down(defaults.bypassUpTo.toLong))
    else if (rows >= SlowSort) needed.max(defaults.partitions.toLong)
    else Most.toLong

  /** Rows of a map task from which sorting them takes longer than opening 200 files (docs/design-decisions.md). */
  private val SlowSort = 1e6

  /** Below this number of partitions, the number of files does not matter. */
  private val SlowBypass = 100
}
