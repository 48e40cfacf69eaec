package org.apache.spark.apportion

import org.apache.spark.SparkContext
import org.apache.spark.scheduler.SparkListenerEvent

/** It is in Spark's namespace because the listener bus is private to Spark. */
object ListenerBus {

  /** Posts an event to all listeners, including the event log if there is one. */
  def post(sparkContext: SparkContext, event: SparkListenerEvent): Unit = sparkContext.listenerBus.post(event)
}
