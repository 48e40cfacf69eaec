package io.apportion.decision.ranges

import java.util.Arrays

/**
 * Chooses the block of each row that a map task writes. The task starts with coarse groups. Before it writes so much into
 * a group that the group's rows of all map tasks would be more than a task should read, it divides the group: it writes
 * the next rows into the group's parts.
 *
 * If all rows of the map task are known, each group is divided before its first row or never. Otherwise, a group keeps the
 * rows that came before. The tasks that read a part of a group read the rest of its block too. So a group may only have a
 * fraction of a task's bytes. With these fractions, tasks read at most [[PartitionTree.MaxReadTwice]] of all bytes in
 * addition, for any number of rows in any group.
 *
 * @param first  level to start with if the map task has more rows than it keeps
 * @param shares for each level, this map task's share of the bytes that a task should read, as they are stored
 * @param rowShare the same for the uncompressed bytes
 */
final class BlockChooser(val tree: PartitionTree, first: Int, shares: Array[Long], rowShare: Long) {
  private val blockOf = new Array[Int](tree.partitions)
  private val bytes = new Array[Long](tree.blocks)

  /** For each block, the uncompressed bytes that it may have before its group is divided. */
  private val most = new Array[Long](tree.blocks)

  /**
   * For each level, the ratio of uncompressed to stored bytes. Until it is measured, it is the ratio of another level, if
   * possible of one above: the fewer rows of a map task a group has, the less these rows are alike.
   */
  private val ratios = Array.fill(tree.depth)(1.0)
  private val isMeasured = new Array[Boolean](tree.depth)

  private val hasSample = new Array[Boolean](tree.depth)
  private val isSample = new Array[Boolean](tree.blocks)
  private var divisions = 0

  /** First level whose groups may be divided after their first rows. The shares are for it and the levels below. */
  private var from = tree.depth - 1
  start(first)
  setLimits()
  addSample(blockOf(0))

  /** Whether the ratio of uncompressed to stored bytes of a block's rows is wanted, for [[setRatio]]. */
  def needsRatio(block: Int): Boolean = isSample(block)

  /** Uncompressed bytes of a block to measure: no more than it may have if its rows cannot be compressed. */
  def bytesToMeasure(block: Int): Long = limit(tree.level(block))

  def setRatio(block: Int, uncompressedToStored: Double): Unit = {
    val level = tree.level(block)
    isSample(block) = false
    isMeasured(level) = true
    ratios(level) = uncompressedToStored.max(1)
    val below = (level + 1 until tree.depth).takeWhile(!isMeasured(_))
    val above = if (isMeasured.take(level).contains(true)) Nil else 0 until level
    (above ++ below).foreach(ratios(_) = ratios(level))
    setLimits()
  }

  /** Block for a row of a partition. */
  def choose(partition: Int, rowBytes: Long): Int = {
    var block = blockOf(partition)
    while (bytes(block) + rowBytes > most(block)) {
      divide(block)
      block = blockOf(partition)
      addSample(block)
    }
    bytes(block) += rowBytes
    block
  }

  /**
   * Blocks of the first rows, chosen again now that these rows are known. Groups are divided until the rows fit, so no
   * group keeps rows that came before it was divided.
   *
   * @param partitions partition of each row
   * @param rowBytes   uncompressed bytes of each row
   * @param isAll      whether no rows follow. Otherwise, groups may be divided after their first rows.
   */
  def place(partitions: Array[Int], rowBytes: Array[Int], isAll: Boolean): Array[Int] = {
    val placed = new Array[Int](partitions.length)
    if (!isAll) divideFrom(first)
    start(if (isAll) 0 else first)
    divideFew(partitions, rowBytes)
    val likely = if (isAll) 1L else BlockChooser.LikelyRows
    var before = -1
    while (before != divisions) {
      before = divisions
      Arrays.fill(bytes, 0)
      var i = 0
      while (i < placed.length) {
        placed(i) = choose(partitions(i), rowBytes(i) * likely)
        i += 1
      }
    }
    bytes.indices.foreach(bytes(_) /= likely)
    // Levels that no group is on any more leave their share of the limit to the others.
    if (!isAll) divideFrom(blockOf.iterator.map(tree.level).min)
    placed
  }

  /** Number of blocks that the map task has written. */
  def written: Int = bytes.count(_ > 0)

  /** Divides the groups of these rows down to partitions if these are few and large: then the size of each is known. */
  private def divideFew(partitions: Array[Int], rowBytes: Array[Int]): Unit = {
    var total = 0L
    rowBytes.foreach(total += _)
    // Map tasks with few rows do not look for their partitions.
    if (total >= BlockChooser.LargePartition) {
      val hasRows = new Array[Boolean](tree.partitions)
      partitions.foreach(hasRows(_) = true)
      val few = hasRows.indices.filter(hasRows)
      if (few.size <= tree.partitions / 2 && total >= few.size * BlockChooser.LargePartition)
        few.foreach(partition => while (tree.level(blockOf(partition)) < tree.depth) divide(blockOf(partition)))
    }
  }

  private def divideFrom(level: Int): Unit = {
    from = level
    setLimits()
  }

  private def start(level: Int): Unit = blockOf.indices.foreach(i => blockOf(i) = tree.blockOf(level, i))

  /** Measures the first block of each level. The last level has no limits. */
  private def addSample(block: Int): Unit = {
    val level = tree.level(block)
    if (level < tree.depth && !hasSample(level)) {
      hasSample(level) = true
      isSample(block) = true
    }
  }

  private def divide(block: Int): Unit = {
    divisions += 1
    val level = tree.level(block)
    val start = tree.start(block)
    val (width, size) = (tree.width(level + 1), tree.subtree(level + 1))
    (0 until tree.width(level)).foreach(i => blockOf(start + i) = block + 1 + i / width * size)
  }

  private def limit(level: Int): Long = (shares(level) * TreeLevels.allowance(tree, level, from)).toLong

  private def setLimits(): Unit = {
    val rowLimit = rowShare * TreeLevels.rowAllowance(tree, from)
    val ofLevel = Array.tabulate(tree.depth) { level =>
      (limit(level) * ratios(level)).min(rowLimit).toLong
    } :+ Long.MaxValue
    (0 until tree.blocks).foreach(block => most(block) = ofLevel(tree.level(block)))
  }
}

object BlockChooser {

  /**
   * Likely rows of a map task that has more rows than it keeps, as a multiple of the kept ones. A group that has room for
   * the kept rows only is divided while it is empty, so no task reads its rows in addition.
   */
  val LikelyRows = 2L

  /** Uncompressed bytes that take longer to write than a block of their own costs: about 60 us (Spark 4.3). */
  private[ranges] val LargePartition = 32L << 10
}
