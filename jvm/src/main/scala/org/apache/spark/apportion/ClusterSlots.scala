package org.apache.spark.apportion

import org.apache.spark.SparkContext

/** In Spark's namespace because the scheduler's backend is private to it. */
object ClusterSlots {

  /** How many tasks of the default resource profile the registered executors run at once. */
  def total(sparkContext: SparkContext): Int =
    sparkContext.schedulerBackend.maxNumConcurrentTasks(sparkContext.resourceProfileManager.defaultResourceProfile)
}
