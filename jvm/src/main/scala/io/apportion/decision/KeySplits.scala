package io.apportion.decision

import io.apportion.decision.memory.HeldRows
import io.apportion.decision.ranges.{Bytes, PowersOfTwo, Ranges}

/**
 * Plans tasks that read one subpartition together, each of them other keys: a task reads the whole subpartition, and keeps
 * the rows whose keys fall into its part of a second hash. Rows with the same key stay together, so this works where
 * [[SkewSplits]] does not, as below aggregates. The subpartition is read once per task.
 */
private[decision] object KeySplits {

  /** Subpartitions with more than this multiple of the target size per task are too large. */
  private val Several = 4L

  /** Maximum number of tasks for a subpartition, as each of them reads all of it. */
  private val MaxParts = 8L

  /**
   * Maximum bytes to read in addition if only some subpartitions are too large, as a fraction of all bytes: a large
   * subpartition may have a single heavy key, which no hash divides.
   */
  private val MaxExtra = 0.25

  /**
   * Ranges and splits of a stage; `None` if no subpartition is too large.
   *
   * @param sums   bytes of each subpartition of all shuffles
   * @param ranges ranges that cover all subpartitions
   */
  def plan(shuffles: Seq[Input], sums: Array[Long], ranges: Ranges, policy: Policy): Option[(Ranges, Seq[Split])] =
    if (policy.parallelism.isDefined || shuffles.isEmpty || !shuffles.forall(_.hasKeys)) None
    else {
      val parts = sums.indices.flatMap(i => Option(partsOf(i, sums(i), shuffles, policy)).filter(_ > 1).map(i -> _))
      val chosen = affordable(parts, sums, policy.upperBound - ranges.size)
      Option.when(chosen.nonEmpty)(
        (ranges.without(chosen.map(_._1).toSet), chosen.map { case (i, n) => split(i, n, shuffles) })
      )
    }

  /** Number of tasks for a subpartition: a power of two, 1 if it is not too large. */
  private def partsOf(i: Int, bytes: Long, shuffles: Seq[Input], policy: Policy): Int = {
    val bySize = (bytes - 1) / (Several * policy.dataVolumePerTask).max(1) + 1
    val byMemory = policy.taskMemory.fold(1L) { memory =>
      (HeldRows.needed(shuffles.map(_.held), shuffles(_).bytes(i)) - 1) / memory + 1
    }
    PowersOfTwo.up(bySize.max(byMemory).min(MaxParts)).toInt
  }

  /** Splits that may help, the largest subpartitions first, in the order of subpartitions. */
  private def affordable(parts: Seq[(Int, Int)], sums: Array[Long], maxMoreTasks: Int): Seq[(Int, Int)] = {
    // If most subpartitions are too large, they have many keys.
    val budget = if (parts.size * 2 > sums.count(_ > 0)) Double.MaxValue else Bytes.sum(sums) * MaxExtra
    val costs = parts.sortBy { case (i, _) => -sums(i) }
    val extra = costs.scanLeft(0.0) { case (sum, (i, n)) => sum + (n - 1.0) * sums(i) }.tail
    val tasks = costs.scanLeft(0L) { case (sum, (_, n)) => sum + n }.tail
    costs
      .zip(extra.zip(tasks))
      .takeWhile { case (_, (bytes, more)) => bytes <= budget && more <= maxMoreTasks }
      .map(_._1)
      .sortBy(_._1)
  }

  private def split(i: Int, n: Int, shuffles: Seq[Input]): Split =
    Split(i, Seq.fill(n)(shuffles.map(input => Part(None, input.bytes(i) / n))), byKeys = true)
}
