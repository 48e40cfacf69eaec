package org.apache.spark.apportion.ui

import scala.xml.Elem

import io.apportion.decision.ranges.Bytes

/** Draws the bytes of subpartitions as bars. Neighbouring ranges have different shades. */
private[ui] final class RangesPlot(bytes: Array[Long], ranges: Seq[(Int, Int)]) {
  import RangesPlot._

  /** Subpartitions per bar. A bar is as high as the largest of its subpartitions. */
  private val width = (bytes.length + MaxBars - 1) / MaxBars
  private val bars = bytes.grouped(width.max(1)).map(_.max).toSeq
  private val largest = bars.maxOption.filter(_ > 0).getOrElse(1L)

  def svg: Elem = {
    val step = Width.toDouble / bars.size.max(1)
    val partitions = count(bytes.length, "shuffle partition")
    val label = s"$partitions of up to ${Bytes.text(largest)} in ${count(ranges.size, "range")}"
    <figure>
      <svg viewBox={s"0 0 $Width $Height"} width="100%" height={
      s"${Height}px"
    } preserveAspectRatio="none" role="img" aria-label={label}>{
      bars.zipWithIndex.map { case (size, i) =>
        val height = Height * size.toDouble / largest
        <rect x={f"${i * step}%.2f"} y={f"${Height - height}%.2f"} width={f"${step * 0.9}%.2f"} height={
          f"$height%.2f"
        } fill={shade(i * width)}>
            <title>{s"shuffle partition ${i * width}: ${Bytes.text(size)}"}</title>
          </rect>
      }
    }</svg>
      <figcaption>{label}</figcaption>
    </figure>
  }

  private def count(n: Int, noun: String): String = if (n == 1) s"1 $noun" else s"$n ${noun}s"

  private def shade(subpartition: Int): String = {
    val range = ranges.indexWhere { case (start, end) => start <= subpartition && subpartition < end }
    if (range == -1) Outside else Shades(range % Shades.size)
  }
}

private object RangesPlot {
  private val MaxBars = 512
  private val Width = 1024
  private val Height = 120
  private val Shades = Seq("#3b78c3", "#8fb7e6")

  /** Color of subpartitions in no range, which are split or read unchanged. */
  private val Outside = "#c2703d"
}
