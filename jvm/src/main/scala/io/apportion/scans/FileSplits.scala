package io.apportion.scans

import java.util.Arrays

import io.apportion.decision.ranges.{Bytes, RangePacker}

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

  private val largest: Long = at(cuttable, cuttable.length - 1).max(at(uncut, uncut.length - 1))

  /** The packer of whole files for the last `openCost`. */
  private var whole: Option[(Long, RangePacker)] = None

  /** The number of tasks for a split size. */
  def tasks(size: Long, openCost: Long): Long =
    if (size < largest) tasksOfPieces(size, openCost) else tasksOfFiles(size, openCost)

  /**
   * The number of tasks for a size that splits no file. Spark closes a task before the file that would raise it above
   * the size, and adds the cost to open that file afterwards. So a task is filled up to the size plus one open cost.
   */
  private def tasksOfFiles(size: Long, openCost: Long): Long = {
    val filling = whole.collect { case (`openCost`, filling) => filling }.getOrElse(largestFirst(openCost))
    whole = Some(openCost -> filling)
    filling.tasks(Bytes.add(size, openCost), most = RangePacker.Never - 1).toLong
  }

  private def largestFirst(openCost: Long): RangePacker = {
    val all = cuttable ++ uncut
    if (uncut.nonEmpty && cuttable.nonEmpty) Arrays.parallelSort(all)
    // Spark skips empty files.
    val costs = new Array[Long](all.count(_ > 0))
    var k = 0
    while (k < costs.length) {
      costs(k) = all(all.length - 1 - k) + openCost
      k += 1
    }
    new RangePacker(costs)
  }

  /**
   * The number of tasks for a size that splits files. Each piece of the full size is one task. Only the remainders of
   * split files are sorted here, because all other pieces are whole files, which are sorted already.
   */
  private def tasksOfPieces(size: Long, openCost: Long): Long = {
    val smaller = countBelow(size)
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
      val (a, b, c) = (at(cuttable, whole), at(rests, rest), at(uncut, other))
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

  /** The number of splittable files below the size. */
  private def countBelow(size: Long): Int = {
    var (low, high) = (0, cuttable.length)
    while (low < high) {
      val middle = (low + high) >>> 1
      if (cuttable(middle) < size) low = middle + 1 else high = middle
    }
    low
  }
}
