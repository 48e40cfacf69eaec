package org.apache.spark.apportion

/** How much longer one of two takes that are measured in turns: the median over the rounds, and the quartiles. */
final case class Ratio(median: Double, lower: Double, upper: Double)

object Ratio {
  def of(ratios: Seq[Double]): Ratio = Ratio(quantile(ratios, 0.5), quantile(ratios, 0.25), quantile(ratios, 0.75))

  def quantile(values: Seq[Double], share: Double): Double = values.sorted.apply((values.size * share).toInt)
}
