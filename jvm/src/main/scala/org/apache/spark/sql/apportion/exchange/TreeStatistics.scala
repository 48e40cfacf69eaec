package org.apache.spark.sql.apportion.exchange

import io.apportion.decision.ranges.{PartitionTree, Ranges}
import org.apache.spark.MapOutputStatistics

/**
 * Statistics of a finished shuffle.
 *
 * @param blockBytes bytes of each block of the tree, of all map tasks
 */
final class TreeStatistics(shuffle: Int, val tree: PartitionTree, val blockBytes: Array[Long])
    extends MapOutputStatistics(shuffle, tree.partitionBytes(blockBytes)) {

  /** Maximum number of blocks of each partition. A block that several partitions share counts in parts. */
  def blocks(mapTasks: Int): Array[Long] = tree.spread(blockBytes.map(bytes => if (bytes > 0) mapTasks.toLong else 0L))

  /** Numbers of groups that map tasks wrote. */
  def levels: Seq[Int] =
    tree.groups.toSeq.zip(tree.byLevel(blockBytes)).collect { case (groups, bytes) if bytes > 0 => groups }

  /** Bytes that the tasks of these ranges read more than once. */
  def readTwice(ranges: Ranges): Long = tree.readTwice(blockBytes, ranges)
}

object TreeStatistics {

  /** Name of an exchange's metric of the blocks that all map tasks wrote. */
  val BlocksMetric = "apportionBlocks"
}
