package io.apportion.decision.ranges

/**
 * Arithmetic on byte counts, which are never negative. Sums saturate at `Long.MaxValue` instead of overflowing. An
 * overflowing sum of two counts sets the sign bit. So a loop only collects the sign bits of its sums, and repeats the
 * work with checked additions if one is set.
 */
object Bytes {
  def add(a: Long, b: Long): Long = {
    val sum = a + b
    if (sum < 0) Long.MaxValue else sum
  }

  def sum(bytes: Array[Long]): Long = sums(bytes, Array(0), Array(bytes.length)).head

  /** Largest count, or 0 without counts. `max` of the standard library would box every count. */
  def largest(bytes: Array[Long]): Long = {
    var largest = 0L
    var i = 0
    while (i < bytes.length) {
      largest = math.max(largest, bytes(i))
      i += 1
    }
    largest
  }

  /**
   * Sum of the counts before each index, then the sum of all counts. A method, as loops in constructors compile
   * badly.
   */
  def prefixSums(bytes: Array[Long]): Array[Long] = {
    val sums = new Array[Long](bytes.length + 1)
    var i = 0
    while (i < bytes.length) {
      sums(i + 1) = add(sums(i), bytes(i))
      i += 1
    }
    sums
  }

  /** Sums of consecutive runs of `length` counts. The last run may be shorter. */
  def sumRuns(bytes: Array[Long], length: Int): Array[Long] =
    if (length <= 1) bytes
    else {
      val starts = Array.range(0, bytes.length, length)
      sums(bytes, starts, starts.map(_ + length))
    }

  /** Each count multiplied by a factor, which is not negative. */
  def scale(bytes: Array[Long], factor: Double): Array[Long] =
    if (factor == 1) bytes else bytes.map(count => (count * factor).toLong)

  /** Sum over all arrays at each index. Beyond its end an array counts as 0. */
  def sumEach(counts: Seq[Array[Long]]): Array[Long] = {
    val sums = new Array[Long](counts.map(_.length).maxOption.getOrElse(0))
    counts.foreach { bytes =>
      var i = 0
      while (i < bytes.length) {
        sums(i) = add(sums(i), bytes(i))
        i += 1
      }
    }
    sums
  }

  /** Sum of `bytes(starts(k))` until `bytes(ends(k))` for each k. Counts beyond the end of `bytes` are 0. */
  def sums(bytes: Array[Long], starts: Array[Int], ends: Array[Int]): Array[Long] = {
    val sums = new Array[Long](starts.length)
    var signs = 0L
    var k = 0
    while (k < sums.length) {
      val end = math.min(ends(k), bytes.length)
      var sum = 0L
      var i = starts(k)
      while (i < end) {
        sum += bytes(i)
        signs |= sum
        i += 1
      }
      sums(k) = sum
      k += 1
    }
    if (signs < 0) starts.zip(ends).map { case (start, end) => bytes.slice(start, end).foldLeft(0L)(add) } else sums
  }

  /** Readable size, such as 0 B, 512 B, 1.5 KiB or 64 MiB. */
  def text(bytes: Long): String = {
    // The text is rounded, and 1024.0 KiB is 1 MiB.
    val exponent = Units.indices.init.find(k => bytes.toDouble / (1L << 10 * k) < 1023.95).getOrElse(Units.size - 1)
    // Each reason has several sizes, and a formatter takes 20 times as long.
    val tenths = math.round(10.0 * bytes / (1L << 10 * exponent))
    s"${tenths / 10}${if (tenths % 10 == 0) "" else s".${tenths % 10}"} ${Units(exponent)}"
  }

  private val Units = IndexedSeq("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
}
