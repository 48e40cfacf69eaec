package org.apache.spark.sql

import org.apache.spark.SparkContext
import org.apache.spark.sql.util.ExecutionListenerBus

/** In Spark's namespace because its listener bus is private to it. */
object QueryListeners {

  /** How many sessions have query listeners on Spark's bus. */
  def buses(sparkContext: SparkContext): Int =
    sparkContext.listenerBus.findListenersByClass[ExecutionListenerBus]().size
}
