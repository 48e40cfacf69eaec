package io.apportion.decision

/** How many subpartitions a shuffle gets, which is decided before anybody knows how many bytes it will have. */
object SubpartitionCount {

  /** A shuffle is not raised above this, as every map task writes that many blocks. */
  val Most = 32768

  /** What an estimate may be wrong by: a stage can get this many times the tasks that are likely. */
  private val Headroom = 2L

  /** Balanced ranges are cut between subpartitions, so they come out the more even the finer these are. */
  private val BalancedHeadroom = 8L

  /**
   * The power of two that leaves a stage room for more tasks than it is likely to get, within the policy's bounds and its bound
   * of blocks. A parallelism that somebody set is what the stage will have, so it needs no more than that.
   *
   * @param likelyBytes of all shuffles that the stage reads together
   * @param mapTasks    likely tasks that write them
   */
  def of(likelyBytes: Long, mapTasks: Long, policy: Policy): Int = policy.parallelism match {
    case Some(tasks) =>
      (if (policy.balanced) PowersOfTwo.up(tasks * BalancedHeadroom) else tasks.toLong).min(Most).toInt
    case None =>
      val likely = Decider.parallelism(likelyBytes, policy)
      val wanted = PowersOfTwo.up(likely * (if (policy.balanced) BalancedHeadroom else Headroom))
      val affordable = PowersOfTwo.down(policy.maxBlocksPerShuffle / mapTasks.max(1)).max(1)
      wanted.min(affordable).min(policy.upperBound.toLong).min(Most).toInt.max(least(policy))
  }

  /** Where nothing is known of the bytes: a power of two that is not above `n`, but the tasks that the policy asks for at least. */
  def unestimated(n: Int, policy: Policy): Int =
    PowersOfTwo.down(n.toLong).toInt.max(least(policy))

  /**
   * How many subpartitions would have bytes if the keys of these had been hashed over `n`, which is not more than there are: exact
   * if `n` divides their number, and else what is to be expected if each of those that have bytes has one key.
   */
  def filled(bytes: Array[Long], n: Int): Double =
    if (bytes.length % n == 0) (0 until n).count(i => (i until bytes.length by n).exists(bytes(_) > 0)).toDouble
    else n * (1 - math.pow(1 - 1.0 / n, bytes.count(_ > 0).toDouble))

  /** What is needed for the tasks that somebody asks for. */
  def least(policy: Policy): Int = policy.parallelism.getOrElse(policy.lowerBound).min(Most)
}
