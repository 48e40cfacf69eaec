package io.apportion.shufflewrites

import io.apportion.caches.{BoundedMap, PerApplication}
import org.apache.spark.sql.execution.SparkPlan

/** Bytes of the shuffles that an application has written, by their canonical plans. */
private[apportion] object EarlierShuffles {
  private val MaxKnown = 1000

  val inApplication = new PerApplication(_ => new BoundedMap[Int, Long](MaxKnown))

  /** The hash code is enough: with a wrong number, map tasks only start with other groups. */
  def nameOf(exchange: SparkPlan): Int = exchange.canonicalized.hashCode
}
