package io.apportion.decision.ranges

/** Rounds 64-bit numbers to powers of two. Numbers below 1 round to 0, and the largest result is 2^62. */
object PowersOfTwo {
  private val Largest = 1L << 62

  /** Largest power of two that is not above `x`. */
  def down(x: Long): Long = if (x < 1) 0 else java.lang.Long.highestOneBit(x)

  /** Smallest power of two that is not below `x`. */
  def up(x: Long): Long = {
    val lower = down(x)
    if (lower >= x.max(0) || lower == Largest) lower else lower << 1
  }

  /** Nearest power of two. A number in the middle of two powers rounds up: 3 -> 4, 5 -> 4, 6 -> 8. */
  def nearest(x: Long): Long = {
    val (lower, upper) = (down(x), up(x))
    if (x < (lower + upper) / 2) lower else upper
  }
}
