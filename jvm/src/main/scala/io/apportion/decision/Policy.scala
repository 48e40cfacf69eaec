package io.apportion.decision

import io.apportion.decision.ranges.PowersOfTwo

/** How the number of tasks is rounded. `name` is a value of the setting `rounding`. */
sealed abstract class Rounding(val name: String)

object Rounding {
  case object PowerOfTwo extends Rounding("power-of-two")
  case object Exact extends Rounding("exact")
  case object Waves extends Rounding("waves")

  val all: Seq[Rounding] = Seq(PowerOfTwo, Exact, Waves)
}

/**
 * Values that a decision depends on: target sizes, limits and the task slots of the cluster.
 *
 * @param dataVolumePerTask       target size per task in bytes, at least 1
 * @param broadcastRatio          maximum share of the target size for broadcast inputs, in (0, 1)
 * @param minParallelism          minimum number of tasks, rounded up to a power of two if [[isPowerOfTwo]]
 * @param maxParallelism          maximum number of tasks, rounded down to a power of two if [[isPowerOfTwo]]
 * @param parallelism             number of tasks if it is set; it is not rounded, and the bounds do not apply
 * @param slots                   task slots that a stage may fill with more tasks than its bytes need; `None` if it
 *                                may not
 * @param declaresSlots           whether a stage that fills the slots also declares them as its requirement (reactive
 *                                mode)
 * @param minTaskVolume           minimum bytes per task if a stage is spread over slots
 * @param sourceParallelism       number of tasks of a stage without inputs
 * @param balanced                whether ranges have similar bytes, instead of equally many subpartitions
 * @param rounding                how the number of tasks is rounded if ranges are balanced
 * @param steadySlots             task slots on which the tasks run in waves; `None` if their number is unknown or may
 *                                change
 * @param rowBytes                whether bytes are uncompressed bytes of rows, instead of stored bytes
 * @param maxBlocksPerTask        maximum number of blocks (non-empty subpartitions times map tasks) per task
 * @param fetchesInBatch          whether Spark fetches the blocks of one map task in one request
 * @param maxSubpartitionsPerTask maximum number of subpartitions per range
 * @param taskMemory              bytes of execution memory that a task may fill with rows; `None` for no limit
 * @param sparksPartitions        number of subpartitions with which Spark would write a shuffle
 * @param setBy                   sources of the values, by the names of the settings; only reports use them
 */
final case class Policy(
    dataVolumePerTask: Long,
    broadcastRatio: Double = 0.5,
    minParallelism: Int = 1,
    maxParallelism: Int = 32768,
    parallelism: Option[Int] = None,
    slots: Option[Int] = None,
    declaresSlots: Boolean = true,
    minTaskVolume: Long = 1L << 20,
    sourceParallelism: Int = 1,
    balanced: Boolean = false,
    rounding: Rounding = Rounding.PowerOfTwo,
    steadySlots: Option[Int] = None,
    rowBytes: Boolean = false,
    maxBlocksPerTask: Long = 1L << 15,
    fetchesInBatch: Boolean = false,
    maxSubpartitionsPerTask: Int = Int.MaxValue,
    taskMemory: Option[Long] = None,
    sparksPartitions: Int = Int.MaxValue,
    setBy: Map[String, ValueSource] = Map.empty
) {
  require(dataVolumePerTask >= 1, s"dataVolumePerTask is $dataVolumePerTask; it must be 1 byte or more")
  require(minTaskVolume >= 1, s"minTaskVolume is $minTaskVolume; it must be 1 byte or more")
  require(
    broadcastRatio > 0 && broadcastRatio < 1,
    s"broadcastRatio is $broadcastRatio; it must be above 0 and below 1"
  )
  require(parallelism.forall(_ >= 1), s"parallelism is ${parallelism.mkString}; it must be 1 or more")
  require(maxBlocksPerTask >= 1, s"maxBlocksPerTask is $maxBlocksPerTask; it must be 1 or more")
  require(
    maxSubpartitionsPerTask >= 1,
    s"maxSubpartitionsPerTask is $maxSubpartitionsPerTask; it must be 1 or more"
  )
  require(slots.forall(_ >= 1), s"slots is ${slots.mkString}; it must be 1 or more")
  require(taskMemory.forall(_ >= 1), s"taskMemory is ${taskMemory.mkString}; it must be 1 byte or more")
  require(sourceParallelism >= 1, s"sourceParallelism is $sourceParallelism; it must be 1 or more")
  Policy
    .boundsProblem(minParallelism, maxParallelism, isPowerOfTwo)
    .foreach(problem => throw new IllegalArgumentException(problem))

  /** Copy with another target size per task. */
  def withVolume(bytes: Long, source: ValueSource): Policy =
    copy(dataVolumePerTask = bytes).withSources("dataVolumePerTask" -> source)

  /** Copy with a set number of tasks. */
  def withParallelism(tasks: Int, source: ValueSource): Policy =
    copy(parallelism = Some(tasks)).withSources("parallelism" -> source)

  /**
   * Copy with even or balanced ranges. With even ranges the number of tasks is a power of two. If there is no power of
   * two between the bounds, the minimum is lowered.
   */
  def withRanges(balanced: Boolean, source: ValueSource): Policy = {
    val minimum =
      if (Policy.boundsProblem(minParallelism, maxParallelism, Policy.isPowerOfTwo(balanced, rounding)).isEmpty)
        minParallelism
      else PowersOfTwo.down(maxParallelism.toLong).toInt
    copy(balanced = balanced, minParallelism = minimum).withSources("ranges" -> source)
  }

  /** Copy with the sources of these values, by the names of the settings. */
  def withSources(sources: (String, ValueSource)*): Policy = copy(setBy = setBy ++ sources)

  /** Whether the number of tasks is a power of two. Even ranges have the same width only then. */
  def isPowerOfTwo: Boolean = Policy.isPowerOfTwo(balanced, rounding)

  /** Minimum number of tasks, rounded. */
  def lowerBound: Int = if (isPowerOfTwo) PowersOfTwo.up(minParallelism.toLong).toInt else minParallelism

  /** Maximum number of tasks, rounded. */
  def upperBound: Int = if (isPowerOfTwo) PowersOfTwo.down(maxParallelism.toLong).toInt else maxParallelism

  /** Maximum number of blocks per range. Blocks that are fetched in batches cost less, so the maximum is higher. */
  def maxBlocksPerRange: Long =
    if (!fetchesInBatch) maxBlocksPerTask
    else if (maxBlocksPerTask > Long.MaxValue / Policy.BlocksPerRequest) Long.MaxValue
    else maxBlocksPerTask * Policy.BlocksPerRequest

  /** Maximum bytes of the target size per task that broadcast inputs take up. */
  def broadcastCap: Long = math.ceil(dataVolumePerTask * broadcastRatio).toLong

  /** Target size per task for shuffles, beside broadcasts of this size. */
  def volumeBeside(broadcastBytes: Long): Long =
    dataVolumePerTask - broadcastBytes.min(broadcastCap).min(dataVolumePerTask - 1)
}

object Policy {

  def isPowerOfTwo(balanced: Boolean, rounding: Rounding): Boolean = !balanced || rounding == Rounding.PowerOfTwo

  /**
   * Number of blocks in batches that cost a task as much as one request for a block. The task still lists each block,
   * in about 120 bytes (`MapOutputTracker.convertMapStatuses`).
   */
  private val BlocksPerRequest = 32

  /**
   * Error message if no number of tasks satisfies both bounds.
   *
   * @param prefix text before the names of the settings
   */
  def boundsProblem(min: Int, max: Int, isPowerOfTwo: Boolean = true, prefix: String = ""): Option[String] = {
    val (lower, upper) = (PowersOfTwo.up(min.toLong), PowersOfTwo.down(max.toLong))
    def name(setting: String, value: Int) = s"$prefix$setting is $value"
    if (min < 1) Some(s"${name("minParallelism", min)}; it must be 1 or more")
    else if (max < 1) Some(s"${name("maxParallelism", max)}; it must be 1 or more")
    else if (!isPowerOfTwo)
      Option.when(min > max)(
        s"${name("minParallelism", min)} and ${name("maxParallelism", max)}: the first must not be above the second"
      )
    else if (lower > upper)
      Some(
        s"${name("minParallelism", min)} and ${name("maxParallelism", max)}: there is no power of two in " +
          s"[$min, $max]. Lower the first to $upper or less, or raise the second to $lower or more"
      )
    else None
  }
}
