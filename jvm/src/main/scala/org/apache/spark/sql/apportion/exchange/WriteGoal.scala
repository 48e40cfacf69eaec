package org.apache.spark.sql.apportion.exchange

import io.apportion.decision.ranges.{Bytes, PartitionTree, PowersOfTwo, TreeLevels}
import org.apache.spark.SparkContext
import org.apache.spark.internal.config._

/**
 * What the tasks that read a shuffle should read. Map tasks divide their rows by it.
 *
 * @param taskBytes   target size of a task, as stored bytes
 * @param slots       number of task slots that small tasks may fill
 * @param slotBytes   minimum size of these small tasks, as stored bytes
 * @param rowBytes    uncompressed bytes that fit the memory of a task
 * @param minTasks    number of tasks that is set, or its minimum
 * @param maxFiles    number of blocks up to which a map task may write one file for each
 * @param likely      likely size of the shuffle
 */
final case class WriteGoal(
    taskBytes: Long,
    slots: Int,
    slotBytes: Long,
    rowBytes: Long,
    minTasks: Int,
    maxFiles: Int,
    likely: ShuffleSize = ShuffleSize()
) {

  /** Bytes of a group that one task should read, if there are this many groups. */
  def groupBytes(groups: Int): Long = if (groups < slots) slotBytes.min(taskBytes) else taskBytes

  /**
   * Tree of groups of partitions. Ranges fit the groups if the numbers of tasks and partitions are powers of two. Otherwise
   * small groups overlap few ranges. One level has the fewest groups that are likely small enough.
   */
  def tree(partitions: Int): PartitionTree = {
    val wanted = if (Integer.bitCount(minTasks) == 1) minTasks.toLong else minTasks * WriteGoal.RangesPerTask
    val least = PowersOfTwo.up(wanted.min(partitions.toLong)).toInt
    Iterator
      .iterate(least)(_ * 2)
      .takeWhile(_ < partitions)
      .map(TreeLevels.tree(partitions, least, _))
      .find(tree => level(tree) < tree.depth)
      .getOrElse(TreeLevels.tree(partitions, least))
  }

  /**
   * Level at which map tasks with many rows start: a guess, so that they write large shuffles finely from the first row
   * on, and do not have to divide their groups.
   */
  def level(tree: PartitionTree): Int =
    (0 until tree.depth)
      .find { level =>
        val likelyGroup = likely.largestOf(tree.groups(level))
        likelyGroup.bytes <= groupBytes(tree.groups(level)) * TreeLevels.allowance(tree, level, level) &&
        likelyGroup.rowBytes <= rowBytes * TreeLevels.rowAllowance(tree, level)
      }
      .getOrElse(tree.depth)

  /**
   * Whether map tasks with many rows write a file per block. Most of the blocks stay empty, but each costs a little time
   * and, once it is written, a buffer. So there may be twice as many as Spark would open files for.
   */
  def canOpenFiles(tree: PartitionTree): Boolean = tree.blocks <= 2 * maxFiles.min(WriteGoal.DefaultMaxFiles)

  /**
   * Number of ranges to divide rows into if their bytes are known before they are written: enough for the tasks that
   * read them, and to make these tasks even.
   *
   * @param bytes   uncompressed bytes of all rows; compressed rows need fewer tasks
   * @param planned number of shuffle partitions. There are more ranges only if the compressed rows need them: each one
   *                adds a block per map task, and rows in small blocks compress less.
   */
  def ranges(bytes: Long, planned: Int): Int = {
    val needed = Seq((bytes / slotBytes).min(slots.toLong), bytes / rowBytes, minTasks.toLong).max
    val tasks = needed.max(bytes / taskBytes)
    if (tasks <= 1) 1
    else {
      val even = PowersOfTwo.up(tasks * WriteGoal.RangesPerTask).min(planned.toLong)
      val compressed = needed.max(bytes / taskBytes / WriteGoal.Compression)
      even.max(PowersOfTwo.up(compressed).min(WriteGoal.MaxRanges)).toInt
    }
  }
}

/**
 * Size of a shuffle. It is 0 if nothing is known.
 *
 * @param bytes    stored bytes
 * @param rowBytes uncompressed bytes
 */
final case class ShuffleSize(bytes: Long = 0, rowBytes: Long = 0) {
  def +(other: ShuffleSize): ShuffleSize =
    ShuffleSize(Bytes.add(bytes, other.bytes), Bytes.add(rowBytes, other.rowBytes))

  /** Likely size of the largest of several groups: a group that has a little more than it may is divided. */
  def largestOf(groups: Int): ShuffleSize = ShuffleSize(bytes / groups / 4 * 5, rowBytes / groups / 4 * 5)
}

object WriteGoal {

  /**
   * Number of blocks up to which a map task may write one file for each; 0 if it would also create the files of empty
   * blocks (`DiskBlockManager.permissionChangingRequired`, SPARK-37618).
   */
  def maxFiles(sparkContext: SparkContext): Int = {
    val conf = sparkContext.conf
    val createsFilesEarly = conf.get(SHUFFLE_SERVICE_ENABLED) &&
      (conf.get(SHUFFLE_SERVICE_REMOVE_SHUFFLE_ENABLED) || conf.get(SHUFFLE_SERVICE_FETCH_RDD_ENABLED))
    if (createsFilesEarly) 0 else conf.get(SHUFFLE_SORT_BYPASS_MERGE_THRESHOLD)
  }

  /** Default of `spark.shuffle.sort.bypassMergeThreshold`. */
  private val DefaultMaxFiles = 200

  /** Sampled bounds are not exact, so tasks become more even if each reads several ranges. */
  private val RangesPerTask = 4L

  /** Usual ratio of the bytes of rows to their stored bytes, or less. */
  private val Compression = 2L

  /** Maximum number of ranges, unless the number of shuffle partitions is higher. */
  private val MaxRanges = 8192L
}
