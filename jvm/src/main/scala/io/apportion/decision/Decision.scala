package io.apportion.decision

/**
 * One input of a stage: the bytes of each subpartition; of a broadcast every task reads all.
 *
 * @param mapTasks tasks that wrote it, each a block for every subpartition; 0 if that is not known
 * @param blocks   the bytes that each map task wrote of a subpartition, if tasks may read a part of one
 */
final class Input(
    val bytes: Array[Long],
    val broadcast: Boolean = false,
    val mapTasks: Int = 0,
    val blocks: Option[Int => Array[Long]] = None
)

/** What decided a parallelism in the end. */
sealed abstract class Kind(val name: String)

/** What changes the number that the formula gives. */
sealed abstract class Clamp(name: String) extends Kind(name)

object Kind {
  case object Formula extends Kind("formula")
  case object Reactive extends Clamp("reactive")
  case object Explicit extends Clamp("explicit")
  case object Minimum extends Clamp("minimum")
  case object Maximum extends Clamp("maximum")
  case object FanIn extends Clamp("fanIn")
  case object Waves extends Clamp("waves")
  case object Subpartitions extends Clamp("subpartitions")
  case object Source extends Clamp("source")
}

/**
 * How many tasks read a group of inputs, which subpartitions each of them reads, and why.
 *
 * @param tasks             that there will be: fewer than `parallelism` where no more would make the largest smaller, and more by
 *                          the parts of subpartitions
 * @param inputBytes        bytes of all shuffle inputs
 * @param broadcastBytes    bytes of all broadcast inputs
 * @param dataVolumePerTask V, bytes a task should read
 * @param broadcastCap      the most bytes of V that broadcast inputs may take up
 * @param raw               tasks that the volume asks for
 * @param rounded           `raw` rounded as the policy says
 * @param clamps            the limits that changed `rounded`, in order
 * @param subpartitions     N, the most tasks that there can be; 0 without shuffle inputs
 * @param bytesByInput      per shuffle input, the bytes that each range has of it
 * @param splits            subpartitions that are read in parts, beside the ranges
 * @param skewed            subpartitions that are too large for one task but not split, the largest first
 */
final case class Decision(
    parallelism: Int,
    tasks: Int,
    ranges: Ranges,
    kind: Kind,
    inputBytes: Long,
    broadcastBytes: Long,
    dataVolumePerTask: Long,
    broadcastCap: Long,
    raw: Long,
    rounded: Long,
    clamps: Seq[Clamp],
    subpartitions: Int,
    bytesByInput: Seq[Array[Long]],
    splits: Seq[Split] = Nil,
    skewed: Seq[Int] = Nil,
    reason: String
) {

  /** Shuffle bytes that each task reads: those of the ranges, then those of splits. */
  lazy val taskBytes: Array[Long] = {
    val ofRanges = Bytes.sumEach(bytesByInput)
    if (splits.isEmpty) ofRanges else ofRanges ++ splits.flatMap(_.taskBytes)
  }

  def largestTaskBytes: Long = if (taskBytes.isEmpty) 0 else taskBytes.max

  def meanTaskBytes: Long = if (taskBytes.isEmpty) 0 else Bytes.sum(taskBytes) / taskBytes.length
}
