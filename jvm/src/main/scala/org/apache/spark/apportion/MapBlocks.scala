package org.apache.spark.apportion

import java.util.stream.IntStream

import org.apache.spark.{MapOutputTrackerMaster, SparkEnv}
import org.apache.spark.scheduler.MapStatus

/** It is in Spark's namespace because the sizes of map outputs are private to Spark. */
object MapBlocks {

  /**
   * For each of these subpartitions, the bytes that each map task wrote. The arrays are empty if outputs are lost, or
   * if the shuffle is unknown.
   */
  def of(shuffle: Int, subpartitions: Seq[Int]): Seq[Array[Long]] = {
    val sizes = SparkEnv.get.mapOutputTracker match {
      case tracker: MapOutputTrackerMaster =>
        tracker.shuffleStatuses.get(shuffle).flatMap(_.withMapStatuses(sizesOf(_, subpartitions.toArray)))
      case _ => None
    }
    sizes.fold(subpartitions.map(_ => Array.empty[Long]))(_.toSeq)
  }

  /**
   * Reads one map output after the other. Each holds the sizes of all its blocks, so they stay in the processor's
   * cache. Spark computes each size as a power (`MapStatus.decompressSize`, 3.5 to 4.2). That takes most of the time,
   * so all cores take part.
   */
  private[apportion] def sizesOf(outputs: Array[MapStatus], subpartitions: Array[Int]): Option[Array[Array[Long]]] =
    if (outputs.contains(null)) None
    else {
      val sizes = Array.ofDim[Long](subpartitions.length, outputs.length)
      IntStream.range(0, outputs.length).parallel().forEach { mapTask =>
        var i = 0
        while (i < subpartitions.length) {
          sizes(i)(mapTask) = outputs(mapTask).getSizeForBlock(subpartitions(i))
          i += 1
        }
      }
      Some(sizes)
    }
}
