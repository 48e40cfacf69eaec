package io.apportion.report

import scala.collection.mutable

import io.apportion.decision.ranges.Ranges

/** Shortens the long columns of a decision for the event log. */
object ShortForm {

  /**
   * Maximum number of shuffle partitions, or of ranges, that an event lists one by one. Above it, the event has sums
   * over neighbouring partitions, and ranges as text.
   */
  val MostExact = 2000

  private val MostSums = 1024

  /** Number of neighbouring shuffle partitions per sum, 1 if each has its own entry. */
  def width(subpartitions: Int): Int = if (subpartitions <= MostExact) 1 else (subpartitions + MostSums - 1) / MostSums

  /** Approximate bytes of each shuffle partition: each sum is divided equally. The total stays the same. */
  def spread(sums: Array[Long], width: Int, subpartitions: Int): Array[Long] =
    if (width == 1) sums
    else
      Array.tabulate(subpartitions.min(sums.length * width)) { i =>
        val (group, place) = (i / width, i % width)
        val size = width.min(subpartitions - group * width)
        sums(group) / size + (if (place < sums(group) % size) 1 else 0)
      }

  /**
   * Ranges as text, separated by commas. Neighbours of equal width are written together as `start-end/width`:
   * `0-8/4,8-9` is `[0, 4) [4, 8) [8, 9)`.
   */
  def text(ranges: Ranges): String = {
    val text = new mutable.StringBuilder
    var k = 0
    while (k < ranges.size) {
      val (start, width) = (ranges.starts(k), ranges.ends(k) - ranges.starts(k))
      var last = k
      while (continues(ranges, last, width)) last += 1
      if (k > 0) text.append(',')
      text.append(start).append('-').append(ranges.ends(last))
      if (last > k) text.append('/').append(width)
      k = last + 1
    }
    text.toString
  }

  private def continues(ranges: Ranges, k: Int, width: Int): Boolean = width > 0 && k + 1 < ranges.size &&
    ranges.starts(k + 1) == ranges.ends(k) && ranges.ends(k + 1) - ranges.starts(k + 1) == width

  /** Ranges from a text that [[text]] wrote. */
  def ranges(text: String): Seq[(Int, Int)] = text.split(',').toSeq.filter(_.nonEmpty).flatMap {
    _.split("[-/]").map(_.toInt) match {
      case Array(start, end)        => Seq(start -> end)
      case Array(start, end, width) => (start until end by width).map(from => from -> (from + width))
      case _                        => Nil
    }
  }
}
