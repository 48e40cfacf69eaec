package io.apportion.decision

/** Contiguous ranges of subpartitions, one a task, in order. Range `k` is `[starts(k), ends(k))`. */
final class Ranges private (val starts: Array[Int], val ends: Array[Int]) {
  def size: Int = starts.length

  def toSeq: Seq[(Int, Int)] = starts.toSeq.zip(ends.toSeq)

  /** The bytes that each range reads of one input; subpartitions beyond the end of `bytes` are empty. */
  def bytesOf(bytes: Array[Long]): Array[Long] = Bytes.sums(bytes, starts, ends)

  /** These ranges without some subpartitions (ascending): cut where one lies inside, dropped where nothing is left. */
  def excluding(subpartitions: Seq[Int]): Ranges =
    if (subpartitions.isEmpty) this
    else {
      val pieces = toSeq.flatMap { case (start, end) =>
        val cuts = subpartitions.filter(s => start <= s && s < end)
        (start +: cuts.map(_ + 1)).zip(cuts :+ end).filter { case (from, until) => from < until }
      }
      Ranges.of(pieces)
    }

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
    val enough = maxWidth.toLong * parallelism >= bytes.length
    val filling = new Filling(bytes, parallelism, if (enough) maxWidth else bytes.length)
    val ends = filling.ends(filling.leastLimit)
    of((0 +: ends.init).zip(ends))
  }

  /** Fills ranges with subpartitions, one after the other, up to a limit of bytes. */
  private final class Filling(bytes: Array[Long], parallelism: Int, maxWidth: Int) {
    private val n = bytes.length

    /** The bytes before each subpartition. */
    private val prefix = {
      val sums = new Array[Long](n + 1)
      var i = 0
      while (i < n) {
        sums(i + 1) = Bytes.add(sums(i), bytes(i))
        i += 1
      }
      sums
    }

    /** The least limit that makes no more than `parallelism` ranges. */
    def leastLimit: Long = {
      val largest = if (n == 0) 0L else bytes.max
      val mean = prefix(n) / parallelism + (if (prefix(n) % parallelism == 0) 0 else 1)
      // Each range but the last would hold more than the mean.
      var (low, high) = (largest.max(mean), if (maxWidth >= n) Bytes.add(mean, largest).min(prefix(n)) else prefix(n))
      while (low < high) {
        val limit = low + (high - low) / 2
        if (fits(limit)) high = limit else low = limit + 1
      }
      low
    }

    def ends(limit: Long): Seq[Int] =
      Iterator.iterate(end(0, limit))(end(_, limit)).takeWhile(_ < n).toSeq :+ n

    private def fits(limit: Long): Boolean = {
      var start, used = 0
      while (start < n && used < parallelism) {
        start = end(start, limit)
        used += 1
      }
      start == n
    }

    /** The furthest end of a range from `start` with no more bytes than the limit, which every single subpartition keeps. */
    private def end(start: Int, limit: Long): Int = {
      val most = Bytes.add(prefix(start), limit)
      // Doubling steps first: ranges are short where there are many.
      var step = 1
      while (start + step <= n - step && prefix(start + step) <= most) step *= 2
      var (low, high) = (start, (start + step).min(n))
      if (start + step > n - step) high = n
      while (low < high) {
        val middle = (low + high + 1) >>> 1
        if (prefix(middle) <= most) low = middle else high = middle - 1
      }
      if (low - start > maxWidth) start + maxWidth else low
    }
  }
}
