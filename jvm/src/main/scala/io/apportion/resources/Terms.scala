package io.apportion.resources

/**
 * What the settings of a session say about the slots of its queries.
 *
 * @param requested     `resources.minSlots` as it is set; `need.min` is the number within all bounds
 * @param asks          whether executors are requested
 * @param followsStages whether the target is the number of tasks of the query's stages, each time they are decided
 * @param rescaling     the policy that changes the target from time to time, if there is one
 * @param pollMillis    time between two calls of the policy
 */
private[apportion] final class Terms(
    val requested: Int,
    val need: ResourceRequirement,
    val patience: Patience,
    val asks: Boolean,
    val followsStages: Boolean,
    val rescaling: Option[RescalingPolicy],
    pollMillis: Long
) {
  private var polledAt = Option.empty[Long]

  /** Whether the query waits for slots, requests executors or has a policy; no other query is tracked. */
  def needsCoordination: Boolean = asks || need.min > 0 || rescaling.isDefined

  /** Whether the policy is to be asked now; if so, it is not again for a while. */
  def isDue(now: Long): Boolean = {
    val due = polledAt.forall(now >= _ + pollMillis)
    if (due) polledAt = Some(now)
    due
  }
}
