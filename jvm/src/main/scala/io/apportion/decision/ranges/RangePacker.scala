package io.apportion.decision.ranges

/**
 * Packs consecutive subpartitions into tasks: it fills one task after the other, up to a limit of bytes per task.
 *
 * @param bytes    bytes of each subpartition; sums above `Long.MaxValue` count as `Long.MaxValue`
 * @param maxWidth maximum number of subpartitions per task
 * @param splitIn  number of tasks that read a subpartition if it alone is above the limit, by its index and the limit;
 *                 [[RangePacker.Never]] if it cannot be split
 */
private[apportion] final class RangePacker(
    bytes: Array[Long],
    maxWidth: Int = Int.MaxValue,
    splitIn: (Int, Long) => Int = (_, _) => RangePacker.Never
) {
  private val n = bytes.length

  /** Bytes before each subpartition, then the bytes of all. */
  private val prefix = Bytes.prefixSums(bytes)

  /** Bytes of the largest subpartition. */
  val largest: Long = Bytes.largest(bytes)

  /** Bytes of all subpartitions. */
  def total: Long = prefix(n)

  /**
   * Smallest limit in bytes under which at most `maxTasks` tasks are needed, found by bisection. A limit of all bytes
   * always suffices, unless `maxWidth` is too small (see [[RangePacker.width]]).
   *
   * @param atLeast known lower bound of the result
   * @param atMost  limit that is known to suffice
   * @param slack   allowed excess over the smallest limit, as a fraction of it; each halving of the slack costs one
   *                more step
   */
  def smallestLimit(maxTasks: Int, atLeast: Long = 0, atMost: Long = Long.MaxValue, slack: Double = 0): Long = {
    val mean = total / maxTasks + (if (total % maxTasks == 0) 0 else 1)
    // If widths do not matter, this limit suffices: each task except the last then reads more than the mean.
    val sufficient = if (maxWidth >= n) Bytes.add(mean, largest).min(total) else total
    var low = mean.max(atLeast)
    var high = sufficient.min(atMost).max(low)
    while (high - low > low * slack) {
      val limit = low + (high - low) / 2
      if (tasks(limit, maxTasks) <= maxTasks) high = limit else low = limit + 1
    }
    high
  }

  /** Ranges of at most `maxTasks` tasks, with as few bytes as possible in the largest one. */
  def balancedRanges(maxTasks: Int): Seq[(Int, Int)] = ranges(smallestLimit(maxTasks)).toSeq

  /** Bytes of the subpartitions in `[from, until)`. */
  def sum(from: Int, until: Int): Long = prefix(until) - prefix(from)

  /** Number of tasks under a limit. Counting stops above `most`, so a larger result only means more than `most`. */
  def tasks(limit: Long, most: Int): Int = {
    var start = 0
    var used = 0L
    while (start < n && used <= most) {
      val next = end(start, limit)
      if (next > start) {
        used += 1
        start = next
      } else {
        used += splitIn(start, limit)
        start += 1
      }
    }
    used.min(RangePacker.Never.toLong).toInt
  }

  /** Range of each task under a limit, in order. An empty range marks a subpartition that is above the limit. */
  def ranges(limit: Long): Iterator[(Int, Int)] = {
    def range(start: Int) = start -> end(start, limit)
    Iterator.iterate(range(0)) { case (start, next) => range(next.max(start + 1)) }.takeWhile(_._1 < n)
  }

  /** Largest end of a range from `start` with at most `limit` bytes and `maxWidth` subpartitions. */
  private def end(start: Int, limit: Long): Int = {
    val maxPrefix = Bytes.add(prefix(start), limit)
    // Double the step first: if there are many ranges, they are short.
    var step = 1
    while (start + step <= n - step && prefix(start + step) <= maxPrefix) step *= 2
    var (low, high) = (start, (start + step).min(n))
    if (start + step > n - step) high = n
    while (low < high) {
      val middle = (low + high + 1) >>> 1
      if (prefix(middle) <= maxPrefix) low = middle else high = middle - 1
    }
    if (low - start > maxWidth) start + maxWidth else low
  }
}

private[apportion] object RangePacker {

  /** Number of tasks for a subpartition that cannot be split: more tasks than any stage has. */
  val Never: Int = Int.MaxValue

  /** `width`, or `n` if `tasks` ranges of that width cannot cover all `n` subpartitions. */
  def width(width: Int, n: Int, tasks: Int): Int = if (width.toLong * tasks >= n) width else n
}
