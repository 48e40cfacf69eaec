package io.apportion.decision.ranges

import io.apportion.decision.ranges.PartitionTree.MaxReadTwice

/** How finely map tasks divide partitions: the levels of a tree, and how much each group may have before it is divided. */
object TreeLevels {

  /** Number of groups of the first level, unless tasks need more. A map task with few rows writes as many blocks. */
  private val FirstGroups = 2

  /** Binary logarithm of the parts of a group, unless they are twice as many. */
  private val LogParts = 3

  /** Share of the first level in the bytes that tasks read twice. */
  private val FirstShare = 1.0 / 8

  /**
   * Tree for some partitions: at least `least` groups, then at least `likely` ones, each of which has 8 to 32 parts, and so
   * on. For a power of two, the numbers of groups are powers of two. For other numbers, they are the nearest divisors.
   *
   * @param likely number of groups that map tasks with many rows will likely need
   */
  def tree(partitions: Int, least: Int = FirstGroups, likely: Int = 1): PartitionTree = {
    val divisors = (1 to partitions).filter(partitions % _ == 0)
    val first = divisors.find(_ >= least.max(FirstGroups)).getOrElse(partitions)
    val start = divisors.find(groups => groups >= likely && groups % first == 0).getOrElse(partitions)
    val log = 31 - Integer.numberOfLeadingZeros(partitions / start)
    val steps = (log / LogParts).max(1)
    val groups = (1 until steps).scanLeft(start) { (above, step) =>
      divisors.filter(_ % above == 0).minBy(each => (each - (start << log * step / steps)).abs)
    }
    PartitionTree((first +: groups :+ partitions).distinct: _*)
  }

  /**
   * Part of a task's bytes that the group of a level may have before it is divided, if the map task has more rows than it
   * keeps. The tasks that read the parts of a group read the bytes in it once each, so for each level they read at most this
   * fraction of all bytes in addition. The parts of the first groups are few, so it costs little to divide these early.
   *
   * @param from first level with rows
   */
  def allowance(tree: PartitionTree, level: Int, from: Int): Double = mostReadTwice(tree) * {
    if (tree.depth - from <= 1) 1
    else if (level == 0) FirstShare
    else (if (from == 0) 1 - FirstShare else 1) / (tree.depth - from.max(1))
  }

  /** Part of a task's memory that the rows of a group may fill before it is divided, if map tasks start at a level. */
  def rowAllowance(tree: PartitionTree, from: Int): Double = MaxReadTwice / (tree.depth - from)

  /** A power of two of tasks fits the groups of a power of two of partitions. Other ranges overlap a group at each end. */
  private def mostReadTwice(tree: PartitionTree): Double =
    if (Integer.bitCount(tree.partitions) == 1) MaxReadTwice else MaxReadTwice / 2
}
