package io.apportion.decision.ranges

/** Contiguous ranges of subpartitions, one a task, in order. Range `k` is `[starts(k), ends(k))`. */
final class Ranges private (val starts: Array[Int], val ends: Array[Int]) {
  def size: Int = starts.length

  def toSeq: Seq[(Int, Int)] = starts.toSeq.zip(ends.toSeq)

  /** The bytes that each range reads of one input; subpartitions beyond the end of `bytes` are empty. */
  def bytesOf(bytes: Array[Long]): Array[Long] = Bytes.sums(bytes, starts, ends)

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
   * Even ranges: number k starts at `k * subpartitions / parallelism` and ends where the next one starts. They are all equally
   * wide when both numbers are powers of two, else their widths differ by one at most. There can be no more ranges than subpartitions; a shuffle without any is read by one empty range.
   */
  def even(subpartitions: Int, parallelism: Int): Ranges = {
    require(
      1 <= parallelism && parallelism <= math.max(subpartitions, 1),
      s"parallelism is $parallelism; with $subpartitions subpartitions it can be 1 to ${math.max(subpartitions, 1)}"
    )
    val (starts, ends) = (new Array[Int](parallelism), new Array[Int](parallelism))
    // The quotients by additions alone: a division each would take longer than everything else.
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
   * At most `parallelism` contiguous ranges whose largest has as few bytes as possible, and no more of them than that needs: the
   * least limit under which filling one range after the other needs no more, found by bisection over the prefix sums.
   *
   * @param bytes    of each subpartition; sums above `Long.MaxValue` count as that
   * @param maxWidth the most subpartitions of a range, if that many ranges can be so narrow
   */
  def balanced(bytes: Array[Long], parallelism: Int, maxWidth: Int = Int.MaxValue): Ranges = {
    require(parallelism >= 1, s"parallelism is $parallelism; it must be 1 or more")
    val filling = new RangePacker(bytes, RangePacker.width(maxWidth, bytes.length, parallelism))
    val steps = filling.steps(filling.leastLimit(parallelism)).toSeq
    if (steps.isEmpty) of(Seq(0 -> 0)) else of(steps)
  }
}
