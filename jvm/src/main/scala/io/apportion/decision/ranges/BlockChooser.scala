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
 * @param level  level to start with
 * @param limits for each level, the maximum bytes of a group in this map task before the group is divided, as they are
 *               stored
 * @param rowLimits the same for the uncompressed bytes
 */
final class BlockChooser(tree: PartitionTree, level: Int, limits: Array[Long], rowLimits: Array[Long]) {
  private val blockOf = Array.tabulate(tree.partitions)(tree.blockOf(level, _))
  private val bytes = new Array[Long](tree.blocks)

  /** For each block, half of the uncompressed bytes that it may have before its group is divided. */
  private val halves = new Array[Long](tree.blocks)
  private var ratio = 1.0
  private var isMeasured = false
  private var divisions = 0
  setLimits()

  /**
   * Whether the ratio of uncompressed to stored bytes would help. It is 1 until it is measured. Most map tasks never
   * measure it, as they do not come near a limit with it.
   */
  var needsRatio: Boolean = false

  def setRatio(uncompressedToStored: Double): Unit = {
    ratio = uncompressedToStored.max(1)
    isMeasured = true
    needsRatio = false
    setLimits()
  }

  /** Block for a row of a partition. */
  def choose(partition: Int, rowBytes: Int): Int = {
    var block = blockOf(partition)
    if (bytes(block) + rowBytes > halves(block)) block = nearLimit(partition, rowBytes)
    bytes(block) += rowBytes
    block
  }

  /**
   * Divides the groups until the first rows fit, and forgets these rows, so that their blocks can be chosen again. Then no
   * group keeps rows that came before it was divided.
   *
   * @param partitions partition of each row
   * @param rowBytes   uncompressed bytes of each row
   */
  def startAgain(partitions: Array[Int], rowBytes: Array[Int]): Unit = {
    var before = -1
    while (before != divisions) {
      before = divisions
      Arrays.fill(bytes, 0)
      partitions.indices.foreach(i => choose(partitions(i), rowBytes(i)))
    }
    Arrays.fill(bytes, 0)
  }

  /** Number of blocks that the map task has written. */
  def written: Int = bytes.count(_ > 0)

  private def nearLimit(partition: Int, rowBytes: Int): Int = {
    needsRatio = !isMeasured
    var block = blockOf(partition)
    while (bytes(block) + rowBytes > halves(block) * 2) {
      divide(block)
      block = blockOf(partition)
    }
    block
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
    halves(block) =
      if (level == tree.depth) Long.MaxValue / 2
      else ((limits(level) * ratio).min(rowLimits(level).toDouble) / 2).toLong
  }
}

object BlockChooser {

  /** A chooser for partitions without groups. */
  def apply(partitions: PartitionTree): BlockChooser = {
    require(partitions.depth == 0, s"there are levels: $partitions")
    new BlockChooser(partitions, 0, Array.empty, Array.empty)
  }
}
