package org.apache.spark.apportion.ui

import scala.xml.Elem

import io.apportion.decision.ranges.Bytes

/** Draws bytes of subpartitions as bars, in two shades by turns for the ranges that they are in. */
private[ui] final class RangesPlot(bytes: Array[Long], ranges: Seq[(Int, Int)]) {
  import RangesPlot._

  /** Many subpartitions share a bar, which is as high as the largest of them. */
  private val width = (bytes.length + MostBars - 1) / MostBars
  private val bars = bytes.grouped(width.max(1)).map(_.max).toSeq
  private val largest = bars.maxOption.filter(_ > 0).getOrElse(1L)

  def svg: Elem = {
    val step = Width.toDouble / bars.size.max(1)
    val label = s"${bytes.length} subpartitions of up to ${Bytes.text(largest)} in ${ranges.size} ranges"
    <figure>
      <svg viewBox={s"0 0 $Width $Height"} width="100%" height={
      s"${Height}px"
    } preserveAspectRatio="none" role="img" aria-label={label}>{
      bars.zipWithIndex.map { case (size, i) =>
        val height = Height * size.toDouble / largest
        <rect x={f"${i * step}%.2f"} y={f"${Height - height}%.2f"} width={f"${step * 0.9}%.2f"} height={
          f"$height%.2f"
        } fill={shade(i * width)}>
            <title>{s"subpartition ${i * width}: ${Bytes.text(size)}"}</title>
          </rect>
      }
    }</svg>
      <figcaption>{label}</figcaption>
    </figure>
  }

  private def shade(subpartition: Int): String = {
    val range = ranges.indexWhere { case (start, end) => start <= subpartition && subpartition < end }
    if (range == -1) Outside else Shades(range % Shades.size)
  }
}

private object RangesPlot {
  private val MostBars = 512
  private val Width = 1024
  private val Height = 120
  private val Shades = Seq("#3b78c3", "#8fb7e6")

  /** Of no range: it is split, or read as it is. */
  private val Outside = "#c2703d"
}
