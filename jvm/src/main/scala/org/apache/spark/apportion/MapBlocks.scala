package org.apache.spark.apportion

import org.apache.spark.{MapOutputTrackerMaster, SparkEnv}

/** In Spark's namespace because the sizes of map outputs are private to it. */
object MapBlocks {

  /** The bytes that each map task wrote of a subpartition; none if some outputs are lost, or nobody knows the shuffle. */
  def of(shuffle: Int, subpartition: Int): Array[Long] = SparkEnv.get.mapOutputTracker match {
    case tracker: MapOutputTrackerMaster =>
      val sizes = tracker.shuffleStatuses
        .get(shuffle)
        .fold(Array.empty[Long])(_.withMapStatuses(_.map(s => if (s == null) -1L else s.getSizeForBlock(subpartition))))
      if (sizes.contains(-1L)) Array.empty else sizes
    case _ => Array.empty
  }
}
