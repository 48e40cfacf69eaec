package io.apportion.decision

import io.apportion.decision.ranges.{Bytes, Ranges}

/**
 * One input of a stage: the bytes of each subpartition; of a broadcast every task reads all.
 *
 * @param mapTasks tasks that wrote it, each a block for every subpartition; 0 if that is not known
 * @param blocks   the bytes that each map task wrote of each of these subpartitions, if tasks may read a part of one
 */
final class Input(
    val bytes: Array[Long],
    val broadcast: Boolean = false,
    val mapTasks: Int = 0,
    val blocks: Option[Seq[Int] => Seq[Array[Long]]] = None
)

/**
 * What decided a parallelism in the end.
 *
 * @param doc for the documentation
 */
sealed abstract class Kind(val name: String, val doc: String)

/** What changes the number that the formula gives. */
sealed abstract class Clamp(name: String, doc: String) extends Kind(name, doc)

object Kind {
  case object Formula extends Kind("formula", "the volume of a task decided")
  case object Reactive extends Clamp("reactive", "raised to use the slots of the cluster")
  case object Explicit
      extends Clamp(
        "explicit",
        "a number was set: by a hint, `parallelism`, `sources.parallelism` or the reader's option `apportion.tasks`"
      )
  case object Minimum extends Clamp("minimum", "raised to `minParallelism`, or a hint's minimum")
  case object Maximum extends Clamp("maximum", "lowered to `maxParallelism`, or a hint's maximum")
  case object FanIn extends Clamp("fanIn", "raised so that no task fetches more blocks than `maxBlocksPerTask`")
  case object Waves extends Clamp("waves", "changed to fill the waves of tasks on the slots (`rounding=waves`)")
  case object Subpartitions extends Clamp("subpartitions", "there were fewer subpartitions than tasks asked for")
  case object Source extends Clamp("source", "nothing is known of the input, so it got `sources.defaultParallelism`")

  val all: Seq[Kind] = Seq(Formula, Reactive, Explicit, Minimum, Maximum, FanIn, Waves, Subpartitions, Source)
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
 * @param limitedByPartitions how many times more tasks the bytes ask for than there are subpartitions, if they do
 * @param skewed            subpartitions that are too large for one task but not split
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
    limitedByPartitions: Option[Double] = None,
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
