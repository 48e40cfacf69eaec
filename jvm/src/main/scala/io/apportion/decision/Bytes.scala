package io.apportion.decision

/** Sums of byte counts that saturate at `Long.MaxValue` instead of overflowing; a negative count is taken as 0. */
object Bytes {
  def add(a: Long, b: Long): Long = {
    val sum = a + b
    if (sum < 0) Long.MaxValue else sum
  }

  /**
   * The sum of all counts. Counts and sums below 2^63 have no sign bit; one look at all sign bits in the end tells whether
   * anything overflowed or was negative, so only absurd inputs pay for checked additions. Two sums at a time keep the
   * processor's adders busy.
   */
  def sum(bytes: Array[Long]): Long = {
    var even, odd, signs = 0L
    var i = 0
    while (i < bytes.length - 1) {
      val (first, second) = (bytes(i), bytes(i + 1))
      even += first
      odd += second
      signs |= first | second | even | odd
      i += 2
    }
    if (i < bytes.length) {
      even += bytes(i)
      signs |= bytes(i) | even
    }
    val sum = even + odd
    if ((signs | sum) < 0) checkedSum(bytes, 0, bytes.length) else sum
  }

  /** The sums of `bytes(starts(k))` until `bytes(ends(k))`, for each k; counts beyond the end of `bytes` are 0. */
  def sums(bytes: Array[Long], starts: Array[Int], ends: Array[Int]): Array[Long] = {
    val sums = new Array[Long](starts.length)
    var signs = 0L
    var k = 0
    while (k < sums.length) {
      val end = math.min(ends(k), bytes.length)
      var sum = 0L
      var i = starts(k)
      while (i < end) {
        val count = bytes(i)
        sum += count
        signs |= count | sum
        i += 1
      }
      sums(k) = sum
      k += 1
    }
    if (signs < 0) Array.tabulate(sums.length)(k => checkedSum(bytes, starts(k), math.min(ends(k), bytes.length)))
    else sums
  }

  private def checkedSum(bytes: Array[Long], from: Int, until: Int): Long =
    (from until until).foldLeft(0L)((sum, i) => add(sum, math.max(0, bytes(i))))

  /** For people: 0 B, 512 B, 1.5 KiB, 64.0 MiB. */
  def text(bytes: Long): String = {
    val units = Seq("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
    val exponent = (63 - java.lang.Long.numberOfLeadingZeros(math.max(bytes, 1))) / 10
    if (exponent == 0) s"$bytes B"
    else String.format(java.util.Locale.ROOT, "%.1f %s", bytes / math.pow(1024, exponent), units(exponent - 1))
  }
}
