package org.apache.spark.apportion.ui

import scala.xml.{Elem, Node}

import io.apportion.decision.ranges.Bytes

/**
 * Draws values as bars. If there are too many, a bar is as high as the largest value of its neighbours.
 *
 * @param name  name of a value, by its index
 * @param shade color of a value, by its index
 * @param goal  value at which to draw a line
 * @param text  text of a value
 */
private[ui] final class BarPlot(
    values: Array[Long],
    name: Int => String,
    shade: Int => String,
    goal: Option[Long] = None,
    text: Long => String = Bytes.text
) {
  import BarPlot._

  /** Values per bar. */
  private val width = (values.length + MaxBars - 1) / MaxBars
  private val bars = values.grouped(width.max(1)).map(_.max).toSeq
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
            <title>{s"${name(i * width)}: ${text(size)}"}</title>
          </rect>
      }
    }{goal.map(line).toSeq}</svg>
      <figcaption>{label}</figcaption>
    </figure>
  }

  private def line(value: Long): Node = {
    val y = f"${top(value)}%.2f"
    <line x1="0" x2={Width.toString} y1={y} y2={
      y
    } stroke="#d0342c" stroke-dasharray="8 6" vector-effect="non-scaling-stroke"/>
  }

  private def top(value: Long): Double = Height - Height * value.toDouble / largest
}

private object BarPlot {
  private val MaxBars = 512
  private val Width = 1024
  private val Height = 120
}
