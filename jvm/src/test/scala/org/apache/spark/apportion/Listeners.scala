package org.apache.spark.apportion

import org.apache.spark.SparkContext

/** In Spark's namespace because its listener bus is private to it. */
object Listeners {

  /** Returns when they have heard of all that has happened. */
  def drain(sparkContext: SparkContext): Unit = sparkContext.listenerBus.waitUntilEmpty()
}
