package io.apportion.decision.ranges

/** Powers of two around a 64-bit number. Zero has none and stays zero; the largest is 2^62. */
object PowersOfTwo {
  private val Largest = 1L << 62

  /** The largest power of two that is not above `x`. */
  def down(x: Long): Long = if (x < 1) 0 else java.lang.Long.highestOneBit(x)

  /** The smallest power of two that is not below `x`. */
  def up(x: Long): Long = {
    val lower = down(x)
    if (lower >= x.max(0) || lower == Largest) lower else lower << 1
  }

  /** The nearer of the two powers around `x`, the upper one when it lies in the middle: 3 -> 4, 5 -> 4, 6 -> 8. */
  def nearest(x: Long): Long = {
    val (lower, upper) = (down(x), up(x))
    if (x < (lower + upper) / 2) lower else upper
  }
}
