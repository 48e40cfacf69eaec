package org.apache.gluten

import org.apache.spark.api.plugin.{DriverPlugin, ExecutorPlugin, SparkPlugin}

/** A plugin with the name of another engine, which does nothing. */
class GlutenPlugin extends SparkPlugin {
  override def driverPlugin(): DriverPlugin = new DriverPlugin {}
  override def executorPlugin(): ExecutorPlugin = new ExecutorPlugin {}
}
