package io.apportion.decision

import io.apportion.decision.ranges.Bytes

/** Tasks that get nothing while others get too much, as where rows are partitioned by a few keys of which several meet in one task. */
object KeySkew {

  /** How many there are; 0 where all that is read is in one task, as nothing could be dealt otherwise then, or no task gets too much. */
  def beside(taskBytes: Array[Long], policy: => Policy): Int = {
    var empty = 0
    var k = 0
    while (k < taskBytes.length) {
      if (taskBytes(k) == 0) empty += 1
      k += 1
    }
    def fairShare = SkewSplits.fairShare(Bytes.sum(taskBytes), taskBytes.length, policy)
    def isTooMuch = Bytes.largest(taskBytes) > fairShare * SkewSplits.Tolerance
    if (empty > 0 && taskBytes.length - empty > 1 && isTooMuch) empty else 0
  }
}
