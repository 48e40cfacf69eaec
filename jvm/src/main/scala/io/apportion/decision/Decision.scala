package io.apportion.decision

import io.apportion.decision.memory.{HeldBytes, HeldRows}
import io.apportion.decision.ranges.{Bytes, Ranges}

/**
 * Input of a stage: a shuffle or a broadcast.
 *
 * @param bytes     bytes of each subpartition
 * @param broadcast whether every task reads the whole input
 * @param mapTasks  number of map tasks that wrote the input; 0 if unknown
 * @param fetched   maximum number of blocks of each subpartition; `None` if each map task wrote a block of each
 *                  subpartition that is not empty
 * @param blocks    for indexes of subpartitions, the bytes that each map task wrote to each of these; `None` if a task
 *                  must read whole subpartitions
 * @param readTwice bytes that tasks with these ranges read in addition, as other tasks read them too; as a fraction of all
 * @param held      execution memory for the rows
 * @param hasKeys   whether tasks may read rows of some keys of a subpartition, if they read all inputs so
 */
final class Input(
    val bytes: Array[Long],
    val broadcast: Boolean = false,
    val mapTasks: Int = 0,
    val fetched: Option[Array[Long]] = None,
    val blocks: Option[Seq[Int] => Seq[Array[Long]]] = None,
    val readTwice: Ranges => Double = _ => 0,
    val held: HeldRows = HeldRows.None,
    val hasKeys: Boolean = false
) {
  private[decision] def heldBytes: HeldBytes = HeldBytes(held, bytes)
}

/**
 * Origin of a number of tasks: the formula, or the last limit that changed it.
 *
 * @param name text in `apportion_decisions()` and in event logs
 * @param doc  text in `docs/decisions.md`
 */
sealed abstract class Kind(val name: String, val doc: String)

/** Limit that can change the result of the formula. */
sealed abstract class Clamp(name: String, doc: String) extends Kind(name, doc)

object Kind {
  case object Formula extends Kind("formula", "the bytes and the target size per task gave the number")
  case object Reactive extends Clamp("reactive", "raised to use the available task slots")
  case object Explicit
      extends Clamp(
        "explicit",
        "the number is set by a hint, `parallelism`, `sources.parallelism` or the reader option `apportion.tasks`"
      )
  case object Minimum extends Clamp("minimum", "raised to `minParallelism`, or to the minimum in a hint")
  case object Maximum extends Clamp("maximum", "lowered to `maxParallelism`, or to the maximum in a hint")
  case object FanIn extends Clamp("fanIn", "raised so that no task fetches too many blocks")
  case object Memory
      extends Clamp("memory", "raised so that the rows that a task holds fit its memory (`memory.enabled`)")
  case object Waves extends Clamp("waves", "rounded to full waves of tasks on the task slots (`rounding=waves`)")
  case object Subpartitions extends Clamp("subpartitions", "limited to the number of shuffle partitions")
  case object Source extends Clamp("source", "the stage has no inputs, so it gets `sources.defaultParallelism`")

  val all: Seq[Kind] = Seq(Formula, Reactive, Explicit, Minimum, Maximum, FanIn, Memory, Waves, Subpartitions, Source)
}

/**
 * Decision about a group of inputs: how many tasks read them, which subpartitions each task reads, and why.
 *
 * @param parallelism         P, the number of tasks after all limits
 * @param tasks               number of tasks that run. It is lower than P if P tasks would not make the largest task
 *                            smaller, and it can be higher if ranges are halved or subpartitions are split.
 * @param ranges              consecutive subpartitions that each task reads; split subpartitions are in `splits`
 * @param inputBytes          bytes of all shuffle inputs
 * @param broadcastBytes      bytes of all broadcast inputs
 * @param raw                 number of tasks that the bytes and the target size per task ask for
 * @param rounded             `raw` after rounding
 * @param clamps              limits that changed `rounded`, in the order in which they applied
 * @param subpartitions       N, the number of subpartitions and maximum number of ranges; 0 without shuffle inputs
 * @param bytesByInput        for each shuffle input, the bytes that each range reads of it
 * @param splits              subpartitions that several tasks read in parts
 * @param halves              number of ranges after some were halved; `None` if none was
 * @param limitedByPartitions ratio of the tasks that the bytes need to N; `None` if N is high enough
 * @param skewed              indexes of subpartitions that are too large for one task but not split
 * @param widestRange         maximum number of subpartitions per range
 * @param heldMemory          bytes of execution memory for the rows of all tasks together; 0 if they hold none
 * @param largestTaskMemory   bytes of execution memory for the rows that the largest task holds; 0 if it holds none
 * @param sentence            the decision as a sentence
 */
final case class Decision(
    parallelism: Int,
    tasks: Int,
    ranges: Ranges = Ranges.none,
    inputBytes: Long,
    broadcastBytes: Long = 0,
    raw: Long,
    rounded: Long,
    clamps: Seq[Clamp],
    subpartitions: Int = 0,
    bytesByInput: Seq[Array[Long]] = Nil,
    splits: Seq[Split] = Nil,
    halves: Option[Int] = None,
    limitedByPartitions: Option[Double] = None,
    skewed: Seq[Int] = Nil,
    widestRange: Int = Int.MaxValue,
    heldMemory: Long = 0,
    largestTaskMemory: Long = 0,
    sentence: Sentence = Sentence("")
) {

  /** Last limit that changed the number of tasks, or the formula. */
  def kind: Kind = clamps.lastOption.getOrElse(Kind.Formula)

  /** Shuffle bytes that each task reads: first the tasks of ranges, then the tasks of splits. */
  lazy val taskBytes: Array[Long] = {
    val rangeBytes = Bytes.sumEach(bytesByInput)
    if (splits.isEmpty) rangeBytes else rangeBytes ++ splits.flatMap(_.taskBytes)
  }

  /** Bytes that tasks read of split subpartitions without keeping their rows. */
  def readForKeys: Long = splits
    .filter(_.byKeys)
    .map(split => split.taskBytes.foldLeft(0L)(Bytes.add) * (split.tasks.size - 1))
    .foldLeft(0L)(Bytes.add)

  def largestTaskBytes: Long = Bytes.largest(taskBytes)

  def meanTaskBytes: Long = if (taskBytes.isEmpty) 0 else Bytes.sum(taskBytes) / taskBytes.length
}
