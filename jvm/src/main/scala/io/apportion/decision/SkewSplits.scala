package io.apportion.decision

import scala.collection.mutable

import io.apportion.decision.ranges.{Bytes, RangePacker, Ranges}

/**
 * Subpartition that is too large for one task, and the tasks that read it together.
 *
 * @param subpartition index of the subpartition
 * @param tasks        for each task, the part of each input that it reads
 * @param byKeys       whether each task reads the whole subpartition and keeps the rows of some keys ([[KeySplits]])
 */
final case class Split(subpartition: Int, tasks: Seq[Seq[Part]], byKeys: Boolean = false) {

  /** Bytes that each task reads, or keeps if the split is by keys. */
  def taskBytes: Seq[Long] = tasks.map(_.map(_.bytes).foldLeft(0L)(Bytes.add))
}

/**
 * Part of one input's subpartition that one task reads.
 *
 * @param mapTasks range `[from, until)` of the map tasks that wrote the part; `None` for the whole subpartition
 * @param bytes    bytes of the part; in a split by keys, an even share of the subpartition
 */
final case class Part(mapTasks: Option[(Int, Int)], bytes: Long)

/**
 * Plans ranges together with splits of skewed subpartitions, so that the largest task reads as few bytes as possible.
 */
private[decision] object SkewSplits {

  /** Subpartitions larger than this multiple of a task's fair share are skewed, and worth a split. */
  val Tolerance = 1.25

  /** Maximum size of a part, as a fraction of its subpartition. Larger parts would help little. */
  private val LargestPart = 0.75

  /**
   * Maximum bytes that all tasks of a split read, as a multiple of its subpartition. A task that reads a part of one
   * side of a join reads all of the other side, so several tasks read the same bytes.
   */
  private val MaxReadFactor = 2

  /** Number of splits that may add two tasks each: one for the range on either side of the split. */
  private val MaxSplitsWithExtraTasks = 4

  /** Allowed excess of the largest task over the smallest possible one, as a fraction. */
  private val Slack = 1.0 / 1024

  /**
   * Number of runs per part. The search adds up blocks in runs, so that the processor's cache can hold them. One run
   * more or less moves the search by 1/64 of a part. The final ends of the parts come from all blocks.
   */
  private val RunsPerPart = 64

  /** Maximum number of blocks that a plan looks at. */
  private val MaxBlocks = 1 << 22

  /**
   * Fair share of a task in bytes: the mean over all tasks, but at least the smaller one of `minTaskVolume` and the
   * target size per task. Smaller tasks are not worth a split.
   *
   * @param inputBytes bytes that all tasks read
   */
  def fairShare(inputBytes: Long, tasks: Int, policy: Policy): Long =
    (inputBytes / tasks.max(1)).max(policy.dataVolumePerTask.min(policy.minTaskVolume))

  /**
   * Indexes of the skewed subpartitions that ranges contain, because they are not split.
   *
   * @param sums         bytes of each subpartition of all inputs
   * @param bytesByInput for each input, the bytes that each range reads of it
   * @param fairShare    bytes that a task should read
   */
  def unsplit(sums: Array[Long], ranges: Ranges, bytesByInput: Seq[Array[Long]], fairShare: Long): Seq[Int] = {
    val threshold = (fairShare * Tolerance).toLong
    val rangeBytes = Bytes.sumEach(bytesByInput)
    val skewed = mutable.ArrayBuffer.empty[Int]
    foreachAbove(threshold, rangeBytes, 0, rangeBytes.length) { k =>
      foreachAbove(threshold, sums, ranges.starts(k), ranges.ends(k))(skewed += _)
    }
    skewed.toSeq
  }

  /** Visits indexes of counts above the threshold. A loop, as a collection would box each of many counts. */
  private def foreachAbove(threshold: Long, counts: Array[Long], from: Int, until: Int)(visit: Int => Unit): Unit = {
    var i = from
    while (i < until) {
      if (counts(i) > threshold) visit(i)
      i += 1
    }
  }

  /**
   * Ranges and splits of a stage. `None` if no subpartition is skewed, or if splits do not help.
   *
   * The stage has `tasks` tasks. Ranges must end where a split begins, so a few more tasks may take less slot time in
   * total. The plan then uses them, unless the number is set.
   *
   * @param sums     bytes of each subpartition of all shuffles
   * @param maxWidth maximum number of subpartitions per range
   */
  def plan(
      shuffles: Seq[Input],
      sums: Array[Long],
      tasks: Int,
      maxWidth: Int,
      policy: Policy
  ): Option[(Ranges, Seq[Split])] = {
    val mapTasks = shuffles.filter(_.blocks.isDefined).map(_.mapTasks).sum
    if (mapTasks == 0) None
    else {
      val share = fairShare(Bytes.sum(sums), tasks, policy)
      val found = mutable.ArrayBuffer.empty[Int]
      foreachAbove((share * Tolerance).toLong, sums, 0, sums.length)(found += _)
      val skewed = found.sortBy(-sums(_)).take((MaxBlocks / mapTasks).max(1)).toSeq
      val maxTasks = (tasks + 2 * skewed.size.min(MaxSplitsWithExtraTasks)).min(policy.upperBound).max(tasks)
      if (skewed.isEmpty) None
      else
        fill(
          sums,
          candidates(skewed, shuffles, sums.length, share),
          if (policy.parallelism.isDefined) Seq(tasks) else tasks to maxTasks,
          RangePacker.width(maxWidth, sums.length, tasks)
        )
    }
  }

  /** Candidate of each subpartition; `null` for a subpartition that stays whole. */
  private def candidates(subpartitions: Seq[Int], shuffles: Seq[Input], n: Int, share: Long): Array[Candidate] = {
    val bySubpartition = new Array[Candidate](n)
    val blocks = shuffles.map(_.blocks.map(_(subpartitions)))
    subpartitions.zipWithIndex.foreach { case (i, place) =>
      bySubpartition(i) = new Candidate(
        i,
        shuffles.map(_.bytes(i)).toArray,
        blocks.map(_.map(_(place)).filter(_.length > 1).orNull).toArray,
        share
      )
    }
    bySubpartition
  }

  /** @param budgets numbers of tasks to choose from, in ascending order */
  private def fill(
      sums: Array[Long],
      candidates: Array[Candidate],
      budgets: Seq[Int],
      maxWidth: Int
  ): Option[(Ranges, Seq[Split])] = {
    def splitIn(i: Int, limit: Long) =
      if (candidates(i) == null) RangePacker.Never else candidates(i).cut(limit, budgets.last).tasks
    val packer = new RangePacker(sums, maxWidth, splitIn)
    // More tasks never need a higher limit, so each search only covers the limits that are left.
    val lowest = packer.smallestLimit(budgets.last, slack = Slack)
    val limits = budgets.init
      .scanLeft(Long.MaxValue) { (previous, budget) =>
        packer.smallestLimit(budget, lowest, previous, Slack)
      }
      .tail
    val limit =
      (limits :+ lowest).distinct.minBy(limit => limit.toDouble * packer.tasks(limit, budgets.last))
    val (whole, large) = packer.ranges(limit).toSeq.partition { case (start, end) => end > start }
    val splits = large.collect {
      case (i, _) if splitIn(i, limit) < RangePacker.Never =>
        candidates(i).split(candidates(i).cut(limit, budgets.last))
    }
    Option.when(splits.nonEmpty)((Ranges.of(whole), splits))
  }

  /**
   * Number of parts into which a split cuts each input.
   *
   * @param counts number of parts of each input; 1 if every task reads the whole input
   * @param tasks  product of the counts, or [[RangePacker.Never]] if there is no such cut
   */
  private final class Cut(val counts: Array[Int], val tasks: Int)

  private val Uncut = new Cut(Array.empty, RangePacker.Never)

  /**
   * Subpartition that may be split.
   *
   * @param bytes  bytes of each input
   * @param blocks for each input that may be cut, the bytes that each map task wrote, in order; `null` for other inputs
   * @param share  bytes that a task should read
   */
  private final class Candidate(subpartition: Int, bytes: Array[Long], blocks: Array[Array[Long]], share: Long) {
    private val total = bytes.foldLeft(0L)(Bytes.add)

    private val runs: Array[RangePacker] = blocks.zip(bytes).map {
      case (null, _)                 => null
      case (inputBlocks, inputBytes) =>
        val parts = (inputBytes / share.max(1)).max(1)
        new RangePacker(Bytes.sumRuns(inputBlocks, (inputBlocks.length / RunsPerPart / parts).toInt))
    }

    /** Sets of inputs that may be cut, smaller sets first. */
    private val choices: Array[Array[Int]] =
      blocks.indices.filter(blocks(_) != null).toSet.subsets().filter(_.nonEmpty).map(_.toArray).toArray

    private var lastLimit = -1L
    private var lastCut = Uncut

    /**
     * Cut with the fewest tasks, none of which reads more than the limit; [[Uncut]] if it needs more than `maxTasks`.
     */
    def cut(limit: Long, maxTasks: Int): Cut = {
      if (limit != lastLimit) {
        lastLimit = limit
        lastCut = fewest(limit.min((total * LargestPart).toLong), maxTasks)
      }
      lastCut
    }

    private def fewest(limit: Long, maxTasks: Int): Cut = choices.foldLeft(Uncut) { (best, chosen) =>
      val cut = cutSome(chosen, limit, maxTasks)
      if (cut.tasks < best.tasks) cut else best
    }

    /**
     * Cuts the chosen inputs into parts of equal size. Each task reads one part of each, and the whole of the other
     * inputs.
     */
    private def cutSome(chosen: Array[Int], limit: Long, maxTasks: Int): Cut = {
      var cuttable = 0L
      chosen.foreach(input => cuttable += bytes(input))
      val share = (limit - (total - cuttable)) / chosen.length
      if (!chosen.forall(runs(_).largest <= share)) Uncut
      else {
        val counts = Array.fill(bytes.length)(1)
        chosen.foreach(input => counts(input) = runs(input).tasks(share, maxTasks))
        val tasks = counts.foldLeft(1.0)(_ * _)
        var read = 0.0
        bytes.indices.foreach(input => read += bytes(input) * (tasks / counts(input)))
        if (tasks <= maxTasks && read <= total.toDouble * MaxReadFactor) new Cut(counts, tasks.toInt) else Uncut
      }
    }

    def split(cut: Cut): Split = {
      val parts = bytes.indices.map { input =>
        if (cut.counts(input) == 1) Seq(Part(None, bytes(input)))
        else {
          val packer = new RangePacker(blocks(input))
          packer.balancedRanges(cut.counts(input)).map { case (from, until) =>
            Part(Some(from -> until), packer.sum(from, until))
          }
        }
      }
      Split(
        subpartition,
        parts.foldRight(Seq(Seq.empty[Part]))((inputParts, rest) => inputParts.flatMap(part => rest.map(part +: _)))
      )
    }
  }
}
