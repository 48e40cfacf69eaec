package org.apache.spark.apportion

import org.apache.spark.SparkContext

/** In Spark's namespace because its listener bus and its conf are private to it. */
object Listeners {

  /** Returns when they have heard of all that has happened. */
  def drain(sparkContext: SparkContext): Unit = sparkContext.listenerBus.waitUntilEmpty()

  /** Runs `body` as if the application had been started with this conf. */
  def withConf[T](sparkContext: SparkContext, settings: (String, String)*)(body: => T): T = {
    val before = settings.map { case (key, _) => key -> sparkContext.conf.getOption(key) }
    settings.foreach { case (key, value) => sparkContext.conf.set(key, value) }
    try body
    finally
      before.foreach { case (key, value) =>
        value.fold(sparkContext.conf.remove(key))(sparkContext.conf.set(key, _))
      }
  }

  def count(sparkContext: SparkContext): Int = sparkContext.listenerBus.listeners.size
}
