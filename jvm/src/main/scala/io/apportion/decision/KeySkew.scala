package io.apportion.decision

import io.apportion.decision.ranges.Bytes

/**
 * Detects rows that are partitioned by only a few keys. Several keys then meet in one task, while other tasks are
 * empty.
 */
object KeySkew {

  /**
   * Number of empty tasks, or 0 if a better distribution is impossible or not needed: all data is in one task, or no
   * task reads too much.
   *
   * @param taskBytes bytes that each task reads
   */
  def emptyTasks(taskBytes: Array[Long], policy: => Policy): Int = {
    var empty = 0
    var k = 0
    while (k < taskBytes.length) {
      if (taskBytes(k) == 0) empty += 1
      k += 1
    }
    def fairShare = SkewSplits.fairShare(Bytes.sum(taskBytes), taskBytes.length, policy)
    def isOverloaded = Bytes.largest(taskBytes) > fairShare * SkewSplits.Tolerance
    if (empty > 0 && taskBytes.length - empty > 1 && isOverloaded) empty else 0
  }
}
