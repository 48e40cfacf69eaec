package io.apportion.report

import org.apache.spark.SparkContext

/**
 * Tracks the task slots of a query. The optional package `resources` implements this trait, so that reports do not
 * depend on that package.
 */
trait SlotTracker {

  /** Reports how many slots the next stage of a query can use. */
  def stageNeeds(sparkContext: SparkContext, query: Long, slots: Int): Unit

  /** Registered slots, and the number of slots that the query has lost; `None` if the query is not tracked. */
  def registeredAndLost(sparkContext: SparkContext, query: Long): Option[(Int, Int)]
}
