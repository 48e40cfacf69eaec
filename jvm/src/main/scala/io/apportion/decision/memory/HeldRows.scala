package io.apportion.decision.memory

/**
 * Execution memory for the rows of an input in the task that reads them, by the operators that hold rows.
 *
 * @param perByte bytes for each byte that the task reads: copies of rows, with their headers
 * @param arrays  for each array that doubles when it is full, the bytes that it needs for each byte that the task
 *                reads; Spark keeps pointers and hash tables in such arrays
 */
final case class HeldRows(perByte: Double, arrays: Seq[Double] = Nil) {
  def isNone: Boolean = perByte == 0 && arrays.isEmpty

  /** The same for bytes that stand for `factor` of these bytes each. */
  def dividedBy(factor: Double): HeldRows =
    if (factor == 1) this else HeldRows(perByte / factor, arrays.map(_ / factor))

  /** Memory for one byte if the arrays are full. */
  def filled: Double = perByte + arrays.sum

  /** Upper bound of the memory for one byte. */
  def atMost: Double = perByte + arrays.map(_ * 2).sum + arrays.maxOption.getOrElse(0.0)
}

object HeldRows {
  val None: HeldRows = HeldRows(0)

  /**
   * Bytes of execution memory of a task. The largest array decides the peak: when it doubles, Spark keeps both halves
   * until the entries have moved, but the task then holds only a part of its rows.
   *
   * @param inputs rows of each input that the task reads
   * @param bytes  bytes that the task reads of each input
   */
  def needed(inputs: Seq[HeldRows], bytes: Int => Long): Long = {
    var rows, allocated, largest, filled = 0.0
    var i = 0
    inputs.foreach { input =>
      val read = bytes(i).toDouble
      rows += input.perByte * read
      input.arrays.foreach { perByte =>
        val used = perByte * read
        val size = upToPowerOfTwo(used)
        allocated += size
        if (size > largest) {
          largest = size
          filled = used
        }
      }
      i += 1
    }
    val rowsAtGrowth = if (filled > 0) rows * (largest / 2 / filled).min(1) else 0
    (allocated + rows.max(rowsAtGrowth + largest / 2)).toLong
  }

  private def upToPowerOfTwo(bytes: Double): Double =
    if (bytes < 1) 0
    else {
      val below = java.lang.Long.highestOneBit(bytes.toLong)
      if (below >= bytes) below.toDouble else 2.0 * below
    }
}
