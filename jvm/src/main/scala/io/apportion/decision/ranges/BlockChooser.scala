package io.apportion.decision.ranges

import java.util.Arrays

/**
 * Chooses the block of each row that a map task writes. The task starts with coarse groups. Before it writes so much into
 * a group that the group's rows of all map tasks would be more than a task should read, it divides the group: it writes
 * the next rows into the group's parts.
 *
 * Not all rows have been seen when the block of a row is chosen, so each group keeps the rows that came before. The
 * tasks that read a part of the group read these too. With limits of [[PartitionTree.allowance]] of a task's bytes, tasks
 * read at most [[PartitionTree.MaxReadTwice]] of all bytes in addition, for any number of rows in any group.
 *
 * @param first  level to start with
 * @param limits for each level, the maximum bytes of a group in this map task before the group is divided, as they are
 *               stored
 * @param rowLimits the same for the uncompressed bytes
 */
final class BlockChooser(tree: PartitionTree, first: Int, limits: Array[Long], rowLimits: Array[Long]) {
  private val blockOf = new Array[Int](tree.partitions)
  private val bytes = new Array[Long](tree.blocks)

  /** For each block, the uncompressed bytes that it may have before its group is divided. */
  private val most = new Array[Long](tree.blocks)

  /**
   * For each level, the ratio of uncompressed to stored bytes. Until it is measured, it is the ratio of the level above:
   * the fewer rows of a map task a group has, the less these rows are alike.
   */
  private val ratios = Array.fill(tree.depth)(1.0)
  private val isMeasured = new Array[Boolean](tree.depth)

  private val hasSample = new Array[Boolean](tree.depth)
  private val isSample = new Array[Boolean](tree.blocks)
  private var divisions = 0
  toFirstLevel()
  setLimits()
  addSample(blockOf(0))

  /** Whether the ratio of uncompressed to stored bytes of a block's rows is wanted, for [[setRatio]]. */
  def needsRatio(block: Int): Boolean = isSample(block)

  /** Uncompressed bytes of a block to measure: no more than it may have if its rows cannot be compressed. */
  def bytesToMeasure(block: Int): Long = limits(tree.level(block))

  def setRatio(block: Int, uncompressedToStored: Double): Unit = {
    val level = tree.level(block)
    isSample(block) = false
    isMeasured(level) = true
    ratios(level) = uncompressedToStored.max(1)
    (level + 1 until tree.depth).takeWhile(!isMeasured(_)).foreach(below => ratios(below) = ratios(level))
    setLimits()
  }

  /** Block for a row of a partition. */
  def choose(partition: Int, rowBytes: Int): Int = {
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
   * Divides groups until the first rows fit, and forgets these rows, so that their blocks can be chosen again. Then no
   * group keeps rows that came before it was divided.
   *
   * @param partitions partition of each row
   * @param rowBytes   uncompressed bytes of each row
   */
  def startAgain(partitions: Array[Int], rowBytes: Array[Int]): Unit = {
    toFirstLevel()
    var before = -1
    while (before != divisions) {
      before = divisions
      forget()
      partitions.indices.foreach(i => choose(partitions(i), rowBytes(i)))
    }
    forget()
  }

  /** Whether some group was divided, so that [[startAgain]] can place rows better. */
  def isDivided: Boolean = divisions > 0

  /** Forgets the rows so far. */
  def forget(): Unit = Arrays.fill(bytes, 0)

  /** Number of blocks that the map task has written. */
  def written: Int = bytes.count(_ > 0)

  private def toFirstLevel(): Unit = blockOf.indices.foreach(i => blockOf(i) = tree.blockOf(first, i))

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

  private def setLimits(): Unit = (0 until tree.blocks).foreach { block =>
    val level = tree.level(block)
    most(block) =
      if (level == tree.depth) Long.MaxValue else (limits(level) * ratios(level)).min(rowLimits(level).toDouble).toLong
  }
}

object BlockChooser {

  /** A chooser for partitions without groups. */
  def apply(partitions: PartitionTree): BlockChooser = {
    require(partitions.depth == 0, s"there are levels: $partitions")
    new BlockChooser(partitions, 0, Array.empty, Array.empty)
  }
}
