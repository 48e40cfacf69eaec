package io.apportion.decision

/**
 * Number of task slots that a stage, a group of stages or a query needs.
 *
 * @param min    slots without which it does not start, 0 or more
 * @param target slots that are requested for it
 * @param max    slots that it can use at most
 */
final case class ResourceRequirement(min: Int, target: Int, max: Int) {
  require(
    0 <= min && min <= target && target <= max && max >= 1,
    s"min is $min, target is $target and max is $max; 0 <= min <= target <= max and max >= 1 must hold"
  )

  /** The same requirement with `slots` as its target, limited to the range from min to max. */
  def aimingAt(slots: Int): ResourceRequirement = copy(target = slots.max(min).min(max))
}

object ResourceRequirement {

  /** Requirement in mode `active`: the bytes set the target, and Apportion requests that many slots. */
  def active(target: Int, max: Int): ResourceRequirement = ResourceRequirement(1, target.max(1).min(max), max)

  /** Requirement in mode `reactive`: the cluster has a fixed size, and the stage can use all of its slots. */
  def reactive(max: Int): ResourceRequirement = ResourceRequirement(1, max, max)

  /** Requirement of a parallelism that the user set: exactly this number of slots. */
  def explicitly(parallelism: Int): ResourceRequirement =
    ResourceRequirement(parallelism, parallelism, parallelism)
}
