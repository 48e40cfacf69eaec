package io.apportion.scans

import java.util.Arrays

/**
 * The files of a scan as Spark packs them into tasks (`FilePartition.getFilePartitions`, 3.5 to 4.2). Spark splits
 * files into pieces of a given size. Then it fills one task after the other up to that size, the largest piece first.
 *
 * @param cuttable sizes in bytes of the files that Spark may split; this class sorts the array
 * @param uncut    sizes in bytes of the other files; this class sorts the array
 */
final class FileSplits(cuttable: Array[Long], uncut: Array[Long]) {
  Arrays.parallelSort(cuttable)
  Arrays.parallelSort(uncut)

  /** Bytes of all files. */
  val bytes: Long = cuttable.sum + uncut.sum

  /** The cost of the scan as Spark counts it, in bytes: a `share` of all bytes, plus the cost to open each file. */
  def cost(openCost: Long, share: Double = 1): Long =
    (if (share == 1) bytes else (bytes * share).toLong) + openCost * (cuttable.length + uncut.length)

  /**
   * The number of tasks for a split size. Spark closes a task before the piece that would raise it above the size, and
   * adds the cost to open a file after its piece. Each piece of the full size is one task. Only the remainders of split
   * files are sorted here, because all other pieces are whole files, which are sorted already. Spark skips empty files.
   */
  def tasks(size: Long, openCost: Long): Long = {
    // A file of exactly the size is one task, whether it counts as a whole file or as a split one.
    val place = Arrays.binarySearch(cuttable, size)
    val smaller = if (place < 0) -place - 1 else place
    val rests = new Array[Long](cuttable.length - smaller)
    var tasks = 0L
    var k = smaller
    while (k < cuttable.length) {
      tasks += cuttable(k) / size
      rests(k - smaller) = cuttable(k) % size
      k += 1
    }
    Arrays.sort(rests)

    var (whole, rest, other) = (smaller - 1, rests.length - 1, uncut.length - 1)
    var filled = size
    var piece = 1L
    while (piece > 0) {
      val a = at(cuttable, whole)
      val b = at(rests, rest)
      val c = at(uncut, other)
      piece = a.max(b).max(c)
      if (piece > 0) {
        if (piece == a) whole -= 1 else if (piece == b) rest -= 1 else other -= 1
        if (filled > size - piece) {
          tasks += 1
          filled = 0
        }
        filled += piece + openCost
      }
    }
    tasks
  }

  /**
   * A split size that makes the wanted number of tasks. Accepts a difference of up to `within`, as a share of the
   * number. Returns the nearest size if there is no better one.
   *
   * Larger sizes make fewer tasks, with few exceptions. So the search keeps a range with too many tasks at its lower
   * end. Its guesses alternate between proportion and bisection. If no size in the range makes the number, it also
   * tries some sizes below.
   */
  def sizeFor(wanted: Int, openCost: Long, within: Double = 0): Long = {
    val total = cost(openCost).max(1)
    var (low, high) = (0L, total)
    var (best, miss) = (high, Long.MaxValue)
    def measure(size: Long): Long = {
      val made = tasks(size, openCost)
      val off = math.abs(made - wanted)
      if (off < miss) {
        best = size
        miss = off
      }
      made
    }
    def isNear: Boolean = miss <= wanted * within
    measure(high)

    var guess = total / wanted
    var byProportion = true
    while (!isNear && high - low > 1) {
      val size = if (byProportion && low < guess && guess < high) guess else low + (high - low) / 2
      val made = measure(size)
      if (made <= wanted) high = size else low = size
      guess = (size.toDouble * made / wanted).toLong
      byProportion = !byProportion
    }
    if (!isNear) (0 to Tries).foreach(step => measure((high - high / 4 / Tries * step - step.min(1)).max(1)))
    best
  }

  private val Tries = 8

  private def at(bytes: Array[Long], k: Int): Long = if (k < 0) 0 else bytes(k)
}
