package io.apportion.decision

import scala.collection.mutable

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
      val threshold = fairShare(Bytes.sum(sums), tasks, policy) * Tolerance
      val large = sums.indices.filter(sums(_) > threshold).sortBy(-sums(_)).take((MostBlocks / mapTasks).max(1))
      val most = (tasks + 2 * large.size.min(MostExtra)).min(policy.upperBound).max(tasks)
      if (large.isEmpty) None
      else
        fill(
          sums,
          large.map(i => i -> new Candidate(i, shuffles)).toMap,
          if (policy.parallelism.isDefined) Seq(tasks) else tasks to most,
          Filling.width(maxWidth, sums.length, tasks)
        )
    }
  }

  private def fill(
      sums: Array[Long],
      candidates: Map[Int, Candidate],
      budgets: Seq[Int],
      maxWidth: Int
  ): Option[(Ranges, Seq[Split])] = {
    def cut(i: Int, limit: Long) = candidates.get(i).flatMap(_.cut(limit))
    val filling = new Filling(sums, maxWidth, cut(_, _).fold(Filling.Never)(_.tasks))
    val limit =
      budgets.map(filling.leastLimit(_)).distinct.minBy(limit => limit.toDouble * filling.tasks(limit, budgets.last))
    val (whole, large) = filling.steps(limit).toSeq.partition { case (start, end) => end > start }
    val splits = large.flatMap { case (i, _) => cut(i, limit).map(candidates(i).split) }
    Option.when(splits.nonEmpty)((Ranges.of(whole), splits))
  }

  /** @param counts into how many parts each input is cut, 1 where it is read whole by every task */
  private final case class Cut(counts: Seq[Int]) {
    def tasks: Int = counts.product
  }

  private final class Candidate(subpartition: Int, shuffles: Seq[Input]) {
    private val blocks = shuffles.map(_.blocks.map(_(subpartition)).filter(_.length > 1))
    private val fillings = blocks.map(_.map(new Filling(_)))
    private val bytes = shuffles.map(_.bytes(subpartition))
    private val total = bytes.foldLeft(0L)(Bytes.add)
    private val choices = blocks.indices.filter(blocks(_).isDefined).toSet.subsets().filter(_.nonEmpty).toSeq

    /** The fewest tasks under which none reads more than the limit. */
    def cut(limit: Long): Option[Cut] = {
      val most = limit.min((total * LargestPart).toLong)
      choices.flatMap(cut(_, most)).minByOption(_.tasks)
    }

    /** Cuts some of the inputs into parts of equal size, and lets each task read one part of each, and the others whole. */
    private def cut(chosen: Set[Int], limit: Long): Option[Cut] = {
      val share = (limit - bytes.indices.filterNot(chosen).map(bytes).sum) / chosen.size
      val counts = bytes.indices.map { input =>
        if (!chosen(input)) 1
        else if (blocks(input).get.exists(_ > share)) Filling.Never
        else fillings(input).get.tasks(share, blocks(input).get.length)
      }
      val tasks = counts.map(_.toDouble).product
      val read = counts.zip(bytes).map { case (count, own) => own * (tasks / count) }.sum
      Option.when(tasks < Filling.Never && read <= total.toDouble * MostReading)(Cut(counts))
    }

    def split(cut: Cut): Split = {
      val parts = blocks.zip(cut.counts).zip(bytes).map {
        case ((Some(sizes), count), _) if count > 1 =>
          Ranges.balanced(sizes, count).toSeq.map { case (from, until) =>
            Part(Some(from -> until), Bytes.sum(sizes.slice(from, until)))
          }
        case (_, whole) => Seq(Part(None, whole))
      }
      Split(
        subpartition,
        parts.foldRight(Seq(Seq.empty[Part]))((own, rest) => own.flatMap(part => rest.map(part +: _)))
      )
    }
  }
}
