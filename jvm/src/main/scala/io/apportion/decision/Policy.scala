package io.apportion.decision

import io.apportion.decision.ranges.PowersOfTwo

/** How a number of tasks is rounded. */
sealed abstract class Rounding(val name: String)

object Rounding {
  case object PowerOfTwo extends Rounding("power-of-two")
  case object Exact extends Rounding("exact")
  case object Waves extends Rounding("waves")

  val all: Seq[Rounding] = Seq(PowerOfTwo, Exact, Waves)
}

/**
 * What a decision has to respect.
 *
 * @param dataVolumePerTask bytes a task should read, at least 1
 * @param broadcastRatio    the part of the volume that broadcast inputs may take up at most, in (0, 1)
 * @param minParallelism    raised to a power of two before use, unless the rounding is another
 * @param maxParallelism    lowered to a power of two before use, unless the rounding is another
 * @param parallelism       the number to use as given, if somebody set one
 * @param slots             the slots that a stage may fill greedily, if it may
 * @param declaresSlots     whether a stage that fills the slots also declares them as its requirement (reactive mode)
 * @param minTaskVolume     bytes that every task keeps when a stage is spread over slots
 * @param sourceParallelism the parallelism of what has no inputs
 * @param balanced          whether ranges hold about equally many bytes, instead of equally many subpartitions
 * @param rounding          how the number of tasks is rounded with balanced ranges
 * @param steadySlots       the slots that the stage's tasks run on in waves, if these are known and do not change
 * @param rowBytes          whether bytes are those of rows as tasks see them, instead of those that are stored
 * @param maxBlocksPerTask  blocks (non-empty subpartitions times map tasks) that a task may fetch
 * @param fetchesInBatch    whether Spark fetches the blocks of a map task in one request
 * @param maxSubpartitionsPerTask subpartitions that a range may span
 * @param maxBlocksPerShuffle blocks (subpartitions times map tasks) that a shuffle may be given
 * @param exactSizesUpTo    subpartitions up to which Spark knows the bytes of each; for the reason only
 * @param setBy             who set a value, by the setting's name; for the reason only
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
    maxBlocksPerShuffle: Long = 1L << 24,
    exactSizesUpTo: Int = 2000,
    setBy: Map[String, String] = Map.empty
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
  require(sourceParallelism >= 1, s"sourceParallelism is $sourceParallelism; it must be 1 or more")
  Policy
    .boundsProblem(minParallelism, maxParallelism, isPowerOfTwo)
    .foreach(problem => throw new IllegalArgumentException(problem))

  def withVolume(bytes: Long, who: String): Policy = copy(dataVolumePerTask = bytes).named("dataVolumePerTask" -> who)

  def withParallelism(tasks: Int, who: String): Policy =
    copy(parallelism = Some(tasks)).named("parallelism" -> who)

  /**
   * The same with even or balanced ranges. Even ranges make a power of two of tasks. If there is none between the bounds, the
   * minimum is lowered.
   */
  def withRanges(balanced: Boolean, who: String): Policy = {
    val least =
      if (Policy.boundsProblem(minParallelism, maxParallelism, Policy.isPowerOfTwo(balanced, rounding)).isEmpty)
        minParallelism
      else PowersOfTwo.down(maxParallelism.toLong).toInt
    copy(balanced = balanced, minParallelism = least).named("ranges" -> who)
  }

  /** The same, with who set these values. */
  def named(who: (String, String)*): Policy = copy(setBy = setBy ++ who)

  /** Whether numbers of tasks are powers of two; even ranges are equally wide only then. */
  def isPowerOfTwo: Boolean = Policy.isPowerOfTwo(balanced, rounding)

  /** The least tasks that can be decided. */
  def lowerBound: Int = if (isPowerOfTwo) PowersOfTwo.up(minParallelism.toLong).toInt else minParallelism

  /** The most tasks that can be decided. */
  def upperBound: Int = if (isPowerOfTwo) PowersOfTwo.down(maxParallelism.toLong).toInt else maxParallelism

  /** The most blocks of a range. */
  def maxBlocksPerRange: Long =
    if (!fetchesInBatch) maxBlocksPerTask
    else if (maxBlocksPerTask > Long.MaxValue / Policy.BlocksPerRequest) Long.MaxValue
    else maxBlocksPerTask * Policy.BlocksPerRequest

  /** The most bytes that broadcast inputs take up of a task's volume. */
  def broadcastCap: Long = math.ceil(dataVolumePerTask * broadcastRatio).toLong
}

object Policy {

  def isPowerOfTwo(balanced: Boolean, rounding: Rounding): Boolean = !balanced || rounding == Rounding.PowerOfTwo

  /**
   * Blocks that cost a task as much as one request for a block, where blocks are fetched in batches: a task still lists each block,
   * in about 120 bytes (`MapOutputTracker.convertMapStatuses`).
   */
  private val BlocksPerRequest = 32

  /** Why no parallelism satisfies both bounds, if none does. `prefix` is put before the settings' names. */
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
