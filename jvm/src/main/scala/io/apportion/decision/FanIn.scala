package io.apportion.decision

/** Limits the blocks that a task fetches: each one takes memory and time, also if it is small. */
private[decision] object FanIn {

  /** Maximum number of subpartitions per range. No range of this width has more blocks than a task may fetch. */
  def widestRange(shuffles: Seq[Input], policy: Policy): Int =
    widestWithin(blockCounts(shuffles), policy.maxBlocksPerRange).min(policy.maxSubpartitionsPerTask)

  /**
   * Maximum number of blocks of each subpartition. A map task without bytes for a subpartition has no block there
   * (`MapOutputTracker.convertMapStatuses`), so an empty subpartition has none.
   */
  private def blockCounts(shuffles: Seq[Input]): Array[Long] = {
    val counted = shuffles.filter(_.mapTasks > 0)
    val blocks = new Array[Long](Decider.subpartitionsOf(counted))
    counted.foreach { input =>
      var i = 0
      while (i < input.bytes.length) {
        if (input.fetched.isDefined) blocks(i) += input.fetched.get(i)
        else if (input.bytes(i) > 0) blocks(i) += input.mapTasks
        i += 1
      }
    }
    blocks
  }

  private def widestWithin(blocks: Array[Long], limit: Long): Int = {
    var widest = Int.MaxValue
    var sum = 0L
    var start, end = 0
    while (end < blocks.length) {
      sum += blocks(end)
      while (sum > limit) {
        // The range from start to end, end included, is too wide by one subpartition.
        widest = widest.min(end - start)
        sum -= blocks(start)
        start += 1
      }
      end += 1
    }
    widest.max(1)
  }
}
