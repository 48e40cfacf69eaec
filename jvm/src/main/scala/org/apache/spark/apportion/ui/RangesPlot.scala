package org.apache.spark.apportion.ui

import scala.xml.Elem

import io.apportion.decision.Sentence
import io.apportion.decision.ranges.Bytes

/**
 * Draws how the bytes of subpartitions become tasks.
 *
 * @param bytes  bytes of each subpartition
 * @param ranges subpartitions that each task reads, the end excluded
 */
private[ui] final class RangesPlot(bytes: Array[Long], ranges: Seq[(Int, Int)]) {
  import RangesPlot._

  /** The bytes of subpartitions. Neighbouring ranges have different shades. */
  def subpartitions: Elem = {
    val partitions = Sentence.count(bytes.length, "shuffle partition")
    val unread = if (bytes.indices.exists(isOutside)) "; orange ones are split or read unchanged" else ""
    val parts = if (ranges.isEmpty) "" else s" in ${Sentence.count(ranges.size, "range")}$unread"
    val label = s"$partitions of up to ${Bytes.text(Bytes.largest(bytes))}$parts"
    new BarPlot(bytes, i => s"shuffle partition $i", shade).svg(label)
  }

  /**
   * The bytes of ranges, with a line at the target size per task. Ranges far above it have another color.
   *
   * @param target target size per task in bytes
   */
  def tasks(target: Long): Elem = {
    val sums = ranges.map { case (start, end) => bytes.slice(start, end).sum }.toArray
    def isFarAbove(size: Long) = size / FarAbove > target
    val above = sums.count(isFarAbove)
    val remark = if (above == 0) "" else s"; ${Sentence.count(above, "orange task")} far above it"
    val label =
      s"${Sentence.count(sums.length, "task")} of up to ${Bytes.text(Bytes.largest(sums))}; the line is the " +
        s"target size per task, ${Bytes.text(target)}$remark"
    new BarPlot(sums, i => s"task $i", i => if (isFarAbove(sums(i))) Marked else Shades.head, Some(target)).svg(label)
  }

  private def range(subpartition: Int): Int =
    ranges.indexWhere { case (start, end) => start <= subpartition && subpartition < end }

  private def isOutside(subpartition: Int): Boolean = ranges.nonEmpty && range(subpartition) == -1

  private def shade(subpartition: Int): String =
    if (isOutside(subpartition)) Marked else Shades(range(subpartition).max(0) % Shades.size)
}

private[ui] object RangesPlot {
  val Shades = Seq("#3b78c3", "#8fb7e6")

  /** Color of large tasks, and of subpartitions in no range, which are split or read unchanged. */
  private val Marked = "#c2703d"

  /** Multiple of the target size above which a task is marked. */
  private val FarAbove = 4
}
