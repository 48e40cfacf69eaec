package io.apportion.decision.ranges

import scala.collection.mutable

/**
 * Tree of groups of shuffle partitions. Each level divides the partitions into groups of adjacent partitions, and the
 * last level has one partition per group. A map task writes each row into the block of one group that contains the
 * row's partition. So a map task with few rows writes few blocks, whatever the number of partitions.
 *
 * Blocks are numbered depth first: the block of a group comes before the blocks of its parts. So the blocks of adjacent
 * groups, with those of all their parts, have consecutive numbers.
 *
 * @param groups number of groups of each level, in ascending order; each number divides the next one
 */
final class PartitionTree private (val groups: Array[Int]) extends Serializable {
  import PartitionTree._

  val depth: Int = groups.length - 1

  /** Number of shuffle partitions. */
  val partitions: Int = groups(depth)

  /** For each level, the number of blocks of a group and of all its parts. */
  val subtree: Array[Int] = {
    val sizes = new Array[Int](groups.length)
    sizes(depth) = 1
    for (level <- depth - 1 to 0 by -1) sizes(level) = 1 + groups(level + 1) / groups(level) * sizes(level + 1)
    sizes
  }

  /** Number of blocks that a map task can write. */
  val blocks: Int = groups(0) * subtree(0)

  /** Level of each block. */
  @transient lazy val level: Array[Int] = nodes._1

  /** First partition of each block's group. */
  @transient lazy val start: Array[Int] = nodes._2

  @transient private lazy val nodes: (Array[Int], Array[Int]) = {
    val (levels, starts) = (new Array[Int](blocks), new Array[Int](blocks))
    for (level <- groups.indices; group <- 0 until groups(level)) {
      val start = group * width(level)
      val block = blockOf(level, start)
      levels(block) = level
      starts(block) = start
    }
    (levels, starts)
  }

  /** Number of partitions of each group of a level. */
  def width(level: Int): Int = partitions / groups(level)

  /** Block of the group of a level that contains a partition. */
  def blockOf(level: Int, partition: Int): Int = {
    var block = partition / width(0) * subtree(0)
    var below = 1
    while (below <= level) {
      block += 1 + partition % width(below - 1) / width(below) * subtree(below)
      below += 1
    }
    block
  }

  /** Blocks that can hold rows of a partition, each with the number of partitions that share it. */
  def blocksOf(partition: Int): Seq[(Int, Int)] =
    groups.indices.map(level => blockOf(level, partition) -> width(level))

  /**
   * Blocks that hold rows of the partitions `[from, until)`, in ascending order. Some blocks also hold rows of other
   * partitions: those of groups that contain the range, or overlap its ends.
   */
  def runs(from: Int, until: Int): Seq[BlockRun] = {
    val found = mutable.ArrayBuffer.empty[BlockRun]
    def add(start: Int, end: Int, isShared: Boolean): Unit = found.lastOption match {
      case Some(run) if run.end == start && !run.isShared && !isShared => found(found.size - 1) = run.copy(end = end)
      case _                                                           => found += BlockRun(start, end, isShared)
    }
    def visit(level: Int, start: Int): Unit = {
      val end = start + width(level)
      val block = blockOf(level, start)
      if (end > from && start < until)
        if (start >= from && end <= until) add(block, block + subtree(level), isShared = false)
        else {
          add(block, block + 1, isShared = true)
          (start until end by width(level + 1)).foreach(visit(level + 1, _))
        }
    }
    if (from < until) {
      val first = from / width(0) * width(0)
      (first until until by width(0)).foreach(visit(0, _))
    }
    found.toSeq
  }

  /** Amount of each partition, if the amount of each block is spread evenly over the partitions of its group. */
  def spread(amounts: Array[Long]): Array[Long] = {
    val spread = new Array[Long](partitions)
    (0 until blocks).foreach(block => if (amounts(block) > 0) addEvenly(amounts(block).toDouble, block, spread))
    spread
  }

  /**
   * Likely bytes of each partition. Rows that came before a group was divided have the same parts of the group as the rows
   * after. Nothing is known about the parts of a group that was never divided, so they are equal. A partition that may have
   * rows never has 0 bytes, as Spark reads no partition that is empty (`ShufflePartitionsUtil.coalescePartitions`).
   *
   * @param bytes bytes of each block
   */
  def partitionBytes(bytes: Array[Long]): Array[Long] = {
    val inSubtree = bytes.clone
    (blocks - 1 to 0 by -1).foreach { block =>
      val parent = parentOf(block)
      if (parent >= 0) inSubtree(parent) = Bytes.add(inSubtree(parent), inSubtree(block))
    }
    val ofGroup = bytes.map(_.toDouble)
    val result = new Array[Long](partitions)
    (0 until blocks).foreach { block =>
      val parent = parentOf(block)
      val ofSiblings = if (parent < 0) 0L else inSubtree(parent) - bytes(parent)
      if (ofSiblings > 0 && ofGroup(parent) > 0)
        ofGroup(block) += (ofGroup(parent) * inSubtree(block) / ofSiblings).max(Double.MinPositiveValue)
      if (ofGroup(block) > 0 && inSubtree(block) == bytes(block)) addEvenly(ofGroup(block), block, result)
    }
    result
  }

  /** Adds shares whose sum is the amount, unless it is less than 1 for each partition of the block. */
  private def addEvenly(amount: Double, block: Int, amounts: Array[Long]): Unit = {
    val wide = width(level(block))
    var before = 0L
    var part = 0
    while (part < wide) {
      val next = math.round(amount * (part + 1) / wide)
      amounts(start(block) + part) = Bytes.add(amounts(start(block) + part), (next - before).max(1))
      before = next
      part += 1
    }
  }

  /** Block of the group that contains the group of a block; -1 on the first level. */
  private def parentOf(block: Int): Int = if (level(block) == 0) -1 else blockOf(level(block) - 1, start(block))

  /** Sum of the amounts of the blocks of each level. */
  def byLevel(amounts: Array[Long]): Array[Long] = {
    val sums = new Array[Long](groups.length)
    (0 until blocks).foreach(block => sums(level(block)) = Bytes.add(sums(level(block)), amounts(block)))
    sums
  }

  /**
   * Bytes that tasks read more than once in all.
   *
   * @param bytes  bytes of each block
   * @param ranges partitions that each task reads
   */
  def readTwice(bytes: Array[Long], ranges: Ranges): Long = {
    val readers = new Array[Int](blocks)
    for ((from, until) <- ranges.toSeq; run <- runs(from, until); if run.isShared) readers(run.start) += 1
    (0 until blocks).foldLeft(0L)((sum, block) => Bytes.add(sum, bytes(block) * (readers(block) - 1).max(0)))
  }

  override def toString: String = groups.mkString(", ")
}

object PartitionTree {

  /**
   * Consecutive blocks `[start, end)`.
   *
   * @param isShared whether the block also holds rows of other partitions than the wanted ones
   */
  final case class BlockRun(start: Int, end: Int, isShared: Boolean)

  def apply(groups: Int*): PartitionTree = {
    require(
      groups.nonEmpty && groups.head >= 1,
      s"groups are ${groups.mkString(", ")}; there must be at least one level"
    )
    require(
      groups.zip(groups.drop(1)).forall { case (coarse, fine) => fine > coarse && fine % coarse == 0 },
      s"groups are ${groups.mkString(", ")}; each number must be a multiple of the one before it"
    )
    new PartitionTree(groups.toArray)
  }

  /** Maximum bytes that tasks read twice, as a fraction of all bytes. */
  val MaxReadTwice = 0.25
}
