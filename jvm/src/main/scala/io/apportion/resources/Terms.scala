package io.apportion.resources

/**
 * On which terms a query runs, as its session has them set.
 *
 * @param asks          whether executors are asked for
 * @param followsStages whether the target is as many slots as the query's stages have tasks, each time they are decided
 * @param rescaling     asked for another target from time to time, if there is one
 * @param pollMillis    how often
 */
private[apportion] final class Terms(
    val need: ResourceRequirement,
    val patience: Patience,
    val asks: Boolean,
    val followsStages: Boolean,
    val rescaling: Option[RescalingPolicy],
    pollMillis: Long
) {
  private var polledAt = Option.empty[Long]

  /** Whether something happens to the query when nothing happens in the cluster. */
  def needsTimer: Boolean = asks || need.min > 0 || rescaling.isDefined

  /** Whether the policy is to be asked now; if so, it is not again for a while. */
  def isDue(now: Long): Boolean = {
    val due = polledAt.forall(now >= _ + pollMillis)
    if (due) polledAt = Some(now)
    due
  }
}
