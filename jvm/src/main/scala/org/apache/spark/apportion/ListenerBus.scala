package org.apache.spark.apportion

import org.apache.spark.SparkContext
import org.apache.spark.scheduler.SparkListenerEvent

/** In Spark's namespace because its listener bus is private to it. */
object ListenerBus {

  /** Gives an event to all listeners, and so to the event log if there is one. */
  def post(sparkContext: SparkContext, event: SparkListenerEvent): Unit = sparkContext.listenerBus.post(event)
}
