package io.apportion.decision

import scala.collection.mutable

import io.apportion.decision.ranges.{Bytes, RangePacker, Ranges}

/**
 * A subpartition that several tasks read.
 *
 * @param tasks per task, the part of each input that it reads
 */
final case class Split(subpartition: Int, tasks: Seq[Seq[Part]]) {
  def taskBytes: Seq[Long] = tasks.map(_.map(_.bytes).foldLeft(0L)(Bytes.add))
}

/** What the map tasks `[from, until)` wrote of a subpartition, or all of it. */
final case class Part(mapTasks: Option[(Int, Int)], bytes: Long)

/** Ranges beside splits of what is too large for one task, made as one: together they minimise the largest task. */
private[decision] object SkewSplits {

  /** A subpartition above this many times what a task should read is worth to be split. */
  val Tolerance = 1.25

  /** Parts are no larger than this much of the whole: cutting off less would help little. */
  private val LargestPart = 0.75

  /** Tasks that join a part of one side with all of the other read no more than this many times the bytes of both. */
  private val MostReading = 2

  /** Subpartitions for which there may be two more tasks each: the ranges on either side. */
  private val MostExtra = 4

  /** How much larger than necessary the largest task may be. */
  private val Slack = 1.0 / 1024

  /**
   * The search takes blocks in runs, about so many for each part, which the processor's cache can hold. A run more or less moves the
   * search by 1/64 of a part. The ends of the parts are found among all blocks.
   */
  private val RunsOfPart = 64

  /** The most blocks that are looked at. */
  private val MostBlocks = 1 << 22

  /** What `tasks` tasks read on average, but for volumes that are too small to be worth it. */
  def fairShare(inputBytes: Long, tasks: Int, policy: Policy): Long =
    (inputBytes / tasks.max(1)).max(policy.dataVolumePerTask.min(policy.minTaskVolume))

  /** The subpartitions within ranges that are worth to be split, but are not. */
  def unsplit(
      shuffles: Seq[Input],
      ranges: Ranges,
      bytesByInput: Seq[Array[Long]],
      fairShare: Long
  ): Seq[Int] = {
    val rangeBytes = Bytes.sumEach(bytesByInput)
    val threshold = (fairShare * Tolerance).toLong
    val inputs = shuffles.map(_.bytes).toArray
    val found = mutable.ArrayBuffer.empty[Int]
    // Loops, as there may be many ranges, and even ones are often above the threshold with none of their subpartitions.
    var k = 0
    while (k < rangeBytes.length) {
      if (rangeBytes(k) > threshold) {
        var i = ranges.starts(k)
        while (i < ranges.ends(k)) {
          if (sumAt(inputs, i) > threshold) found += i
          i += 1
        }
      }
      k += 1
    }
    found.toSeq
  }

  private def sumAt(inputs: Array[Array[Long]], i: Int): Long = {
    var sum = 0L
    var k = 0
    while (k < inputs.length) {
      if (i < inputs(k).length) sum = Bytes.add(sum, inputs(k)(i))
      k += 1
    }
    sum
  }

  /**
   * Ranges and splits for `tasks` tasks, or for some more where nobody set the number and that takes the least time of slots, as
   * ranges have to end where a split begins. None where no subpartition is skewed or where splits do not help.
   */
  def plan(shuffles: Seq[Input], tasks: Int, maxWidth: Int, policy: Policy): Option[(Ranges, Seq[Split])] = {
    val mapTasks = shuffles.filter(_.blocks.isDefined).map(_.mapTasks).sum
    if (mapTasks == 0) None
    else {
      val sums = Bytes.sumEach(shuffles.map(_.bytes))
      val share = fairShare(Bytes.sum(sums), tasks, policy)
      val large = largest(sums, (share * Tolerance).toLong, (MostBlocks / mapTasks).max(1))
      val most = (tasks + 2 * large.size.min(MostExtra)).min(policy.upperBound).max(tasks)
      if (large.isEmpty) None
      else
        fill(
          sums,
          candidates(large, shuffles, sums.length, share),
          if (policy.parallelism.isDefined) Seq(tasks) else tasks to most,
          RangePacker.width(maxWidth, sums.length, tasks)
        )
    }
  }

  /** The places of the largest sums above the threshold. */
  private def largest(sums: Array[Long], threshold: Long, most: Int): Seq[Int] = {
    val found = mutable.ArrayBuffer.empty[Int]
    var i = 0
    while (i < sums.length) {
      if (sums(i) > threshold) found += i
      i += 1
    }
    found.sortBy(-sums(_)).take(most).toSeq
  }

  /** By subpartition; null for those that are not to be split. */
  private def candidates(subpartitions: Seq[Int], shuffles: Seq[Input], n: Int, share: Long): Array[Candidate] = {
    val found = new Array[Candidate](n)
    val blocks = shuffles.map(_.blocks.map(_(subpartitions)))
    subpartitions.zipWithIndex.foreach { case (i, place) =>
      found(i) = new Candidate(
        i,
        shuffles.map(_.bytes(i)).toArray,
        blocks.map(_.map(_(place)).filter(_.length > 1).orNull).toArray,
        share
      )
    }
    found
  }

  private def fill(
      sums: Array[Long],
      candidates: Array[Candidate],
      budgets: Seq[Int],
      maxWidth: Int
  ): Option[(Ranges, Seq[Split])] = {
    def splitIn(i: Int, limit: Long) =
      if (candidates(i) == null) RangePacker.Never else candidates(i).cut(limit, budgets.last).tasks
    val filling = new RangePacker(sums, maxWidth, splitIn)
    // More tasks never need a higher limit, so each search is among the limits that are left.
    val least = filling.leastLimit(budgets.last, slack = Slack)
    val limits = budgets.init
      .scanLeft(Long.MaxValue) { (above, budget) =>
        filling.leastLimit(budget, least, above, Slack)
      }
      .tail
    val limit =
      (limits :+ least).distinct.minBy(limit => limit.toDouble * filling.tasks(limit, budgets.last))
    val (whole, large) = filling.steps(limit).toSeq.partition { case (start, end) => end > start }
    val splits = large.collect {
      case (i, _) if candidates(i) != null && candidates(i).cut(limit, budgets.last).isPossible =>
        candidates(i).split(candidates(i).cut(limit, budgets.last))
    }
    Option.when(splits.nonEmpty)((Ranges.of(whole), splits))
  }

  /**
   * @param counts into how many parts each input is cut, 1 where it is read whole by every task
   * @param tasks  the product of the counts, or [[RangePacker.Never]]
   */
  private final class Cut(val counts: Array[Int], val tasks: Int) {
    def isPossible: Boolean = tasks < RangePacker.Never
  }

  private val Uncut = new Cut(Array.empty, RangePacker.Never)

  /**
   * A subpartition that may be split.
   *
   * @param bytes  of each input
   * @param blocks of each input that may be cut, those of its map tasks in order; null for the others
   * @param share  what a task should read
   */
  private final class Candidate(subpartition: Int, bytes: Array[Long], blocks: Array[Array[Long]], share: Long) {
    private val total = bytes.foldLeft(0L)(Bytes.add)

    private val runs: Array[RangePacker] = blocks.zip(bytes).map {
      case (null, _)    => null
      case (own, bytes) =>
        new RangePacker(Bytes.sumRuns(own, (own.length / RunsOfPart / (bytes / share.max(1)).max(1)).toInt))
    }

    /** Sets of inputs that can be cut, smaller sets first. */
    private val choices: Array[Array[Int]] =
      blocks.indices.filter(blocks(_) != null).toSet.subsets().filter(_.nonEmpty).map(_.toArray).toArray

    private var lastLimit = -1L
    private var lastCut = Uncut

    /** The fewest tasks under which none reads more than the limit. More tasks than `most` are of no use. */
    def cut(limit: Long, most: Int): Cut = {
      if (limit != lastLimit) {
        lastLimit = limit
        lastCut = fewest(limit.min((total * LargestPart).toLong), most)
      }
      lastCut
    }

    private def fewest(limit: Long, most: Int): Cut = {
      var best = Uncut
      var i = 0
      while (i < choices.length) {
        val cut = cutSome(choices(i), limit, most)
        if (cut.tasks < best.tasks) best = cut
        i += 1
      }
      best
    }

    /** Cuts some of the inputs into parts of equal size, and lets each task read one part of each, and the others whole. */
    private def cutSome(chosen: Array[Int], limit: Long, most: Int): Cut = {
      var cuttable = 0L
      chosen.foreach(input => cuttable += bytes(input))
      val share = (limit - (total - cuttable)) / chosen.length
      if (!chosen.forall(runs(_).largest <= share)) Uncut
      else {
        val counts = Array.fill(bytes.length)(1)
        chosen.foreach(input => counts(input) = runs(input).tasks(share, most))
        val tasks = counts.foldLeft(1.0)(_ * _)
        var read = 0.0
        bytes.indices.foreach(input => read += bytes(input) * (tasks / counts(input)))
        if (tasks <= most && read <= total.toDouble * MostReading) new Cut(counts, tasks.toInt) else Uncut
      }
    }

    def split(cut: Cut): Split = {
      val parts = bytes.indices.map { input =>
        if (cut.counts(input) == 1) Seq(Part(None, bytes(input)))
        else {
          val filling = new RangePacker(blocks(input))
          filling.leastRanges(cut.counts(input)).map { case (from, until) =>
            Part(Some(from -> until), filling.sum(from, until))
          }
        }
      }
      Split(
        subpartition,
        parts.foldRight(Seq(Seq.empty[Part]))((own, rest) => own.flatMap(part => rest.map(part +: _)))
      )
    }
  }
}
