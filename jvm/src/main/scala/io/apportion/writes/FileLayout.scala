package io.apportion.writes

import io.apportion.decision.{Clamp, Decider, Decision, Input, Kind, Part, Policy, Sentence, Split}
import io.apportion.decision.ranges.{Bytes, RangePacker, Ranges}

/**
 * Assigns shuffle partitions to tasks so that each task reads about the target size. `Decider` makes the largest task as
 * small as possible, and then a few large partitions make all other tasks as large. Here the size of a task does not
 * depend on other tasks.
 */
private[writes] object FileLayout {

  /** Largest part of a split partition, as a multiple of the target size. Larger partitions are split. */
  val LargestPart = 1.25

  /** Maximum number of map outputs that a plan looks at. */
  private val MaxBlocks = 1 << 22

  /** Limits beside which the target size still counts. Others, such as a parallelism, set the number of tasks. */
  private val Compatible: Set[Clamp] = Set(Kind.Memory, Kind.Subpartitions)

  def decide(inputs: Seq[Input], policy: Policy): Decision = {
    val base = Decider.decide(inputs, policy)
    if (base.inputBytes == 0 || !base.clamps.forall(Compatible)) base
    else {
      val shuffles = inputs.filterNot(_.broadcast)
      val isLimited = base.clamps.contains(Kind.Memory)
      val volume =
        if (isLimited) policy.dataVolumePerTask.min(base.inputBytes / base.parallelism).max(1)
        else policy.dataVolumePerTask
      val sums = Bytes.sumEach(shuffles.map(_.bytes))
      val splits = shuffles match {
        case Seq(shuffle) => splitsOf(shuffle, volume)
        case _            => Nil
      }
      // Both sides of a skewed join are split together.
      if (splits.isEmpty && base.splits.nonEmpty) base
      else {
        val split = splits.map(_.subpartition)
        val runs = Ranges.of(Seq(0 -> sums.length)).without(split.toSet).toSeq.filter { case (from, until) =>
          splits.isEmpty || Bytes.sum(sums.slice(from, until)) > 0
        }
        val ranges = Ranges.of(runs.flatMap { case (from, until) => nearest(sums, from, until, volume) })
        val tasks = ranges.size + splits.map(_.tasks.size).sum
        val size = s"${Bytes.text(policy.dataVolumePerTask)} per task" +
          policy.setBy.get("dataVolumePerTask").fold("")(source => s" (${source.text})")
        val memory = if (isLimited) s", more tasks as the rows of ${base.parallelism} tasks fit the memory" else ""
        base.copy(
          parallelism = tasks,
          tasks = tasks,
          ranges = ranges,
          splits = splits,
          bytesByInput = shuffles.map(input => ranges.bytesOf(input.bytes)),
          skewed = sums.indices.filter(sums(_) > volume * LargestPart).diff(split),
          sentence = Sentence(
            s"${Sentence.count(tasks, "task")}: ${Bytes.text(base.inputBytes)} at $size$memory"
          )
        )
      }
    }
  }

  /** Splits of the partitions that are too large, if tasks may read parts of them. */
  private def splitsOf(shuffle: Input, volume: Long): Seq[Split] = {
    val part = volume * LargestPart
    val large = shuffle.bytes.indices
      .filter(shuffle.bytes(_) > part)
      .sortBy(-shuffle.bytes(_))
      .take(MaxBlocks / shuffle.mapTasks.max(1))
      .sorted
    shuffle.blocks.filter(_ => large.nonEmpty).toSeq.flatMap { blocks =>
      large.zip(blocks(large)).flatMap { case (i, outputs) =>
        val wanted = math.ceil(shuffle.bytes(i) / part).min(outputs.length.toDouble).toInt
        val parts = if (wanted < 2) Nil else partsOf(outputs, wanted)
        Option.when(parts.size > 1)(Split(i, parts.map(Seq(_))))
      }
    }
  }

  private def partsOf(outputs: Array[Long], wanted: Int): Seq[Part] = {
    val packer = new RangePacker(outputs)
    packer.balancedRanges(wanted).map { case (from, until) => Part(Some(from -> until), packer.sum(from, until)) }
  }

  /**
   * Ranges of about `volume` bytes each: a run is cut where the sum of its bytes is nearest to the multiples of an equal
   * share. No range is empty.
   */
  private def nearest(bytes: Array[Long], from: Int, until: Int, volume: Long): Seq[(Int, Int)] = {
    val sums = Bytes.prefixSums(bytes.slice(from, until))
    val total = sums.last.toDouble
    val count = math.round(total / volume).max(1)
    val share = total / count
    var i = 0
    val cuts = (1L until count).map { k =>
      // A partition may contain several multiples. The nearest cut is before or after the partition.
      while (sums(i + 1) < k * share) i += 1
      from + (if (k * share - sums(i) < sums(i + 1) - k * share) i else i + 1)
    }
    val ends = (cuts.filter(cut => cut > from && cut < until) :+ until).distinct
    withoutEmpty(bytes, (from +: ends).zip(ends))
  }

  /** Adjacent ranges in which each range without bytes is a part of its neighbor. */
  private def withoutEmpty(bytes: Array[Long], ranges: Seq[(Int, Int)]): Seq[(Int, Int)] = {
    val filled = ranges.filter { case (from, until) => Bytes.sum(bytes.slice(from, until)) > 0 }
    if (filled.isEmpty) Seq(ranges.head._1 -> ranges.last._2)
    else {
      val starts = ranges.head._1 +: filled.tail.map(_._1)
      starts.zip(starts.tail :+ ranges.last._2)
    }
  }
}
