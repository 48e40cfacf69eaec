package org.apache.spark.apportion

import java.util.stream.IntStream

import io.apportion.decision.ranges.Bytes
import org.apache.spark.{MapOutputStatistics, MapOutputTrackerMaster, SparkEnv}
import org.apache.spark.scheduler.MapStatus
import org.apache.spark.sql.apportion.exchange.TreeStatistics

/** It is in Spark's namespace because the sizes of map outputs are private to Spark. */
object MapBlocks {

  /**
   * For each of these subpartitions, the bytes that each map task wrote. The arrays are empty if outputs are lost, or
   * if the shuffle is unknown.
   */
  def of(statistics: MapOutputStatistics, subpartitions: Seq[Int]): Seq[Array[Long]] = {
    val sources = statistics match {
      case adaptive: TreeStatistics => subpartitions.map(adaptive.tree.blocksOf)
      case _                        => subpartitions.map(i => Seq(i -> 1))
    }
    val blocks = sources.flatten.map(_._1).distinct.toArray
    val sizes = SparkEnv.get.mapOutputTracker match {
      case tracker: MapOutputTrackerMaster =>
        tracker.shuffleStatuses.get(statistics.shuffleId).flatMap(_.withMapStatuses(sizesOf(_, blocks)))
      case _ => None
    }
    sizes.fold(subpartitions.map(_ => Array.empty[Long])) { sizes =>
      val bytesOf = blocks.zip(sizes).toMap
      sources.map {
        case Seq((block, 1)) => bytesOf(block)
        case shared          => Bytes.sumEach(shared.map { case (block, parts) => bytesOf(block).map(_ / parts) })
      }
    }
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
