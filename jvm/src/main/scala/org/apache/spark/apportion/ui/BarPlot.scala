package org.apache.spark.apportion.ui

import scala.xml.{Elem, Node}

import io.apportion.decision.ranges.Bytes

/**
 * Draws bytes as bars. If there are too many, a bar is as high as the largest value of its neighbours.
 *
 * @param noun  name of a value
 * @param shade color of a value, by its index
 * @param goal  bytes at which to draw a line
 */
private[ui] final class BarPlot(bytes: Array[Long], noun: String, shade: Int => String, goal: Option[Long] = None) {
  import BarPlot._

  /** Values per bar. */
  private val width = (bytes.length + MaxBars - 1) / MaxBars
  private val bars = bytes.grouped(width.max(1)).map(_.max).toSeq
  private val largest = (bars ++ goal).maxOption.filter(_ > 0).getOrElse(1L)

  def svg(label: String): Elem = {
    val step = Width.toDouble / bars.size.max(1)
    <figure>
      <svg viewBox={s"0 0 $Width $Height"} width="100%" height={
      s"${Height}px"
    } preserveAspectRatio="none" role="img" aria-label={label}>{
      bars.zipWithIndex.map { case (size, i) =>
        val y = top(size)
        <rect x={f"${i * step}%.2f"} y={f"$y%.2f"} width={f"${step * 0.9}%.2f"} height={
          f"${Height - y}%.2f"
        } fill={shade(i * width)}>
            <title>{s"$noun ${i * width}: ${Bytes.text(size)}"}</title>
          </rect>
      }
    }{goal.map(line).toSeq}</svg>
      <figcaption>{label}</figcaption>
    </figure>
  }

  private def line(bytes: Long): Node = {
    val y = f"${top(bytes)}%.2f"
    <line x1="0" x2={Width.toString} y1={y} y2={
      y
    } stroke="#d0342c" stroke-dasharray="8 6" vector-effect="non-scaling-stroke"/>
  }

  private def top(bytes: Long): Double = Height - Height * bytes.toDouble / largest
}

private object BarPlot {
  private val MaxBars = 512
  private val Width = 1024
  private val Height = 120
}
