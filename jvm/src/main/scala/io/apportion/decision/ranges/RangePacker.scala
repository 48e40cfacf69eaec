package io.apportion.decision.ranges

/**
 * Fills tasks with subpartitions, one after the other, up to a limit of bytes.
 *
 * @param bytes    of each subpartition; sums above `Long.MaxValue` count as that
 * @param maxWidth the most subpartitions of a task
 * @param splitIn  the tasks that it takes to read a single subpartition which is above the limit, or [[RangePacker.Never]]
 */
private[apportion] final class RangePacker(
    bytes: Array[Long],
    maxWidth: Int = Int.MaxValue,
    splitIn: (Int, Long) => Int = (_, _) => RangePacker.Never
) {
  private val n = bytes.length

  /** The bytes before each subpartition. */
  private val prefix = Bytes.prefixSums(bytes)

  val largest: Long = Bytes.largest(bytes)

  def total: Long = prefix(n)

  /**
   * The least limit under which no more than `most` tasks are needed, found by bisection. With subpartitions as
   * large as they are, there is always one.
   *
   * @param atLeast a limit that is known not to be above it
   * @param atMost  a limit that is known to be enough
   * @param slack   how much higher than the least the limit may be, as a part of it: each halving of that takes one more search
   */
  def leastLimit(most: Int, atLeast: Long = 0, atMost: Long = Long.MaxValue, slack: Double = 0): Long = {
    val mean = total / most + (if (total % most == 0) 0 else 1)
    // Each task but the last would read more than the mean.
    val enough = if (maxWidth >= n) Bytes.add(mean, largest).min(total) else total
    var low = mean.max(atLeast)
    var high = enough.min(atMost).max(low)
    while (high - low > low * slack) {
      val limit = low + (high - low) / 2
      if (tasks(limit, most) <= most) high = limit else low = limit + 1
    }
    high
  }

  /** The ranges of at most `count` tasks whose largest has as few bytes as possible. */
  def leastRanges(count: Int): Seq[(Int, Int)] = steps(leastLimit(count)).toSeq

  def sum(from: Int, until: Int): Long = prefix(until) - prefix(from)

  /** How many tasks a limit makes; any number above `most` stands for more. */
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

  /** Where the tasks end, in order; one ends where it starts if the subpartition there is above the limit. */
  def steps(limit: Long): Iterator[(Int, Int)] = Iterator.unfold(0) { start =>
    Option.when(start < n) {
      val next = end(start, limit)
      (start -> next, next.max(start + 1))
    }
  }

  /** The furthest end of a task from `start` with no more bytes than the limit. */
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

private[apportion] object RangePacker {

  /** More tasks than there can be. */
  val Never: Int = Int.MaxValue

  /** `width`, or all of `n` subpartitions if that many tasks cannot be so narrow. */
  def width(width: Int, n: Int, tasks: Int): Int = if (width.toLong * tasks >= n) width else n
}
