package org.apache.spark.apportion

import scala.util.Random

import io.apportion.ApportionExtension
import org.apache.spark.sql.classic.SparkSession

/** A result with its bounds: the error of JMH, or the quartiles of the rounds. */
final case class Result(
    item: String,
    measure: String,
    value: Double,
    digits: Int,
    bounds: Option[(Double, Double)] = None
)

/** Measurements without JMH: in one session, turn by turn. */
object Turns {

  def inSession[T](master: String, confs: (String, String)*)(measure: SparkSession => T): T = {
    val session =
      SparkSession.builder().master(master).config(confs.toMap).withExtensions(new ApportionExtension).getOrCreate()
    try measure(session)
    finally session.stop()
  }

  def millis(body: => Any): Double = {
    val start = System.nanoTime()
    body
    (System.nanoTime() - start) / 1e6
  }

  /** Times of the variants by name, for each round after the first ones, which warm up. The order is random. */
  def rounds(count: Int, warmUp: Int)(variants: Seq[(String, () => Double)]): Seq[Map[String, Double]] = {
    val random = new Random(1)
    (1 to count).map(_ => random.shuffle(variants).map { case (name, run) => name -> run() }.toMap).drop(warmUp)
  }

  def median(values: Seq[Double]): Double = quantile(values, 0.5)

  /** How much longer one of two takes: the median over the rounds, and the quartiles. */
  def ratio(item: String, measure: String, ratios: Seq[Double]): Result =
    Result(item, measure, median(ratios), 2, Some((quantile(ratios, 0.25), quantile(ratios, 0.75))))

  private def quantile(values: Seq[Double], share: Double): Double = values.sorted.apply((values.size * share).toInt)
}
