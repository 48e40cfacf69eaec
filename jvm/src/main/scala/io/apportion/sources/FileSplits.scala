package io.apportion.sources

import java.util.Arrays

/**
 * How Spark deals files to the tasks of a scan: it cuts those that can be cut into pieces of a size, and fills one task after
 * the other with them, the largest first, up to that size.
 *
 * @param openCost what opening a file counts as, in bytes
 */
final class FileSplits(files: Seq[FileSplits.File], val openCost: Long) {
  import FileSplits._

  /** What the scan costs, as Spark counts it. */
  val bytes: Long = files.map(_.bytes + openCost).sum

  private val (cuttable, uncut) = {
    val (some, others) = files.partition(_.canBeCut)
    (some.map(_.bytes).toArray, others.map(_.bytes).toArray)
  }

  /** The tasks that a size makes. */
  def tasks(size: Long): Long = {
    // A piece of the full size is a task of its own; what is left of a file shares one.
    val rest = new Array[Long](cuttable.length + uncut.length)
    var tasks = 0L
    var k = 0
    while (k < cuttable.length) {
      tasks += cuttable(k) / size
      rest(k) = cuttable(k) % size
      k += 1
    }
    System.arraycopy(uncut, 0, rest, cuttable.length, uncut.length)
    Arrays.sort(rest)
    var filled = size
    k = rest.length - 1
    while (k >= 0 && rest(k) > 0) {
      if (filled > size - rest(k)) {
        tasks += 1
        filled = 0
      }
      filled += rest(k) + openCost
      k -= 1
    }
    tasks
  }

  /**
   * The size that makes as many tasks as wanted, or about that where the files do not let it be. Larger sizes make fewer tasks,
   * but for exceptions on the way: bisection finds a size that makes no more than wanted, and some below it are tried as well.
   */
  def sizeFor(wanted: Int): Long = {
    var (low, high) = (1L, bytes.max(1))
    while (low < high) {
      val size = low + (high - low) / 2
      if (tasks(size) <= wanted) high = size else low = size + 1
    }
    val tried = (0 to Tries).map(step => (low - low / 4 / Tries * step - step.min(1)).max(1))
    tried.minBy(size => math.abs(tasks(size) - wanted))
  }
}

object FileSplits {
  private val Tries = 8

  final case class File(bytes: Long, canBeCut: Boolean)
}
