package io.apportion.decision.ranges

/** Contiguous ranges of subpartitions in order, one range per task. Range `k` is `[starts(k), ends(k))`. */
final class Ranges private (val starts: Array[Int], val ends: Array[Int]) {
  def size: Int = starts.length

  def toSeq: Seq[(Int, Int)] = starts.toSeq.zip(ends.toSeq)

  /**
   * Bytes that each range reads of one input.
   *
   * @param bytes bytes of each subpartition of the input; subpartitions beyond the end are empty
   */
  def bytesOf(bytes: Array[Long]): Array[Long] = Bytes.sums(bytes, starts, ends)

  /**
   * Ranges that have at most `limit` bytes, or one subpartition: larger ranges are cut in halves, again and again. Halves
   * of a group of a [[PartitionTree]] consist of whole smaller groups. An empty half is no range of its own.
   *
   * @param bytes bytes of each subpartition
   */
  def halved(bytes: Array[Long], limit: Long): Ranges = {
    val prefix = Bytes.prefixSums(bytes)
    def halves(from: Int, until: Int): Seq[(Int, Int)] =
      if (until - from <= 1 || prefix(until) - prefix(from) <= limit) Seq(from -> until)
      else {
        val middle = (from + until) >>> 1
        val (left, right) = (halves(from, middle), halves(middle, until))
        if (prefix(middle) == prefix(from)) (from -> right.head._2) +: right.tail
        else if (prefix(until) == prefix(middle)) left.init :+ (left.last._1 -> until)
        else left ++ right
      }
    if (bytesOf(bytes).forall(_ <= limit)) this
    else Ranges.of(toSeq.flatMap { case (from, until) => halves(from, until) })
  }

  /** The ranges without these subpartitions. No range is empty. */
  def without(subpartitions: Set[Int]): Ranges =
    Ranges.of(toSeq.flatMap { case (start, end) =>
      val cuts = (start until end).filter(subpartitions)
      (start +: cuts.map(_ + 1)).zip(cuts :+ end).filter { case (from, until) => from < until }
    })

  override def equals(other: Any): Boolean = other match {
    case that: Ranges => starts.sameElements(that.starts) && ends.sameElements(that.ends)
    case _            => false
  }

  override def hashCode: Int = toSeq.hashCode

  override def toString: String = toSeq.map { case (start, end) => s"[$start, $end)" }.mkString(" ")
}

object Ranges {
  val none: Ranges = of(Seq.empty)

  def of(ranges: Seq[(Int, Int)]): Ranges = new Ranges(ranges.map(_._1).toArray, ranges.map(_._2).toArray)

  /**
   * Ranges of equally many subpartitions: range `k` starts at `k * subpartitions / parallelism` and ends where the
   * next range starts. If both numbers are powers of two, all ranges have the same width. Otherwise widths differ by
   * at most one.
   *
   * @param parallelism number of ranges, at most `subpartitions`; a shuffle without subpartitions has one empty range
   */
  def even(subpartitions: Int, parallelism: Int): Ranges = {
    require(
      1 <= parallelism && parallelism <= math.max(subpartitions, 1),
      s"parallelism is $parallelism and subpartitions is $subpartitions; parallelism must be between 1 and " +
        math.max(subpartitions, 1)
    )
    val (starts, ends) = (new Array[Int](parallelism), new Array[Int](parallelism))
    // Additions compute the quotients: a division per range would take longer than the rest of the loop.
    val (width, remainder) = (subpartitions / parallelism, subpartitions % parallelism)
    var start, carry, k = 0
    while (k < parallelism) {
      starts(k) = start
      start += width
      carry += remainder
      if (carry >= parallelism) {
        carry -= parallelism
        start += 1
      }
      ends(k) = start
      k += 1
    }
    new Ranges(starts, ends)
  }

  /**
   * Contiguous ranges with as few bytes as possible in the largest one. There are at most `parallelism` ranges, and
   * fewer if more would not make the largest one smaller. The ranges are filled in order, up to
   * [[RangePacker.smallestLimit]].
   *
   * @param bytes    bytes of each subpartition; sums above `Long.MaxValue` count as `Long.MaxValue`
   * @param maxWidth maximum number of subpartitions per range; ignored if `parallelism` such ranges cannot cover all
   */
  def balanced(bytes: Array[Long], parallelism: Int, maxWidth: Int = Int.MaxValue): Ranges = {
    require(parallelism >= 1, s"parallelism is $parallelism; it must be 1 or more")
    val packer = new RangePacker(bytes, RangePacker.width(maxWidth, bytes.length, parallelism))
    val ranges = packer.balancedRanges(parallelism)
    if (ranges.isEmpty) of(Seq(0 -> 0)) else of(ranges)
  }
}
