package org.apache.spark.apportion

import java.util.stream.IntStream

import org.apache.spark.{MapOutputTrackerMaster, SparkEnv}
import org.apache.spark.scheduler.MapStatus

/** In Spark's namespace because the sizes of map outputs are private to it. */
object MapBlocks {

  /** The bytes that each map task wrote of each of these subpartitions; no bytes if some outputs are lost or the shuffle is not known. */
  def of(shuffle: Int, subpartitions: Seq[Int]): Seq[Array[Long]] = {
    val sizes = SparkEnv.get.mapOutputTracker match {
      case tracker: MapOutputTrackerMaster =>
        tracker.shuffleStatuses.get(shuffle).flatMap(_.withMapStatuses(sizesOf(_, subpartitions.toArray)))
      case _ => None
    }
    sizes.fold(subpartitions.map(_ => Array.empty[Long]))(_.toSeq)
  }

  /**
   * One map output after the other: each holds the sizes of all its blocks, so that they are in the processor's cache. Spark computes each
   * size as a power (`MapStatus.decompressSize`, 3.5 to 4.2), which takes the longest, so that all cores read.
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
