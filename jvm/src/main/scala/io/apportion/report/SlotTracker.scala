package io.apportion.report

import org.apache.spark.SparkContext

/** The task slots of a query. The optional package `resources` implements it; recording decisions does not depend on that. */
trait SlotTracker {

  /** Tells that the next stage of a query can use this many slots. */
  def stageNeeds(sparkContext: SparkContext, query: Long, slots: Int): Unit

  /** The registered slots, and how many of its slots the query has lost; `None` for a query that is not tracked. */
  def registeredAndLost(sparkContext: SparkContext, query: Long): Option[(Int, Int)]
}
