package io.apportion.decision

/**
 * The slots that a stage, a group of stages or a query declares.
 *
 * @param min    without which it does not start
 * @param target that it would like
 * @param max    beyond which it can use no more
 * @param spec   what a slot is made of
 */
final case class ResourceRequirement(min: Int, target: Int, max: Int, spec: ResourceSpec = ResourceSpec()) {
  require(
    0 <= min && min <= target && target <= max && max >= 1,
    s"min is $min, target is $target and max is $max; they must be 0 or more, in this order, and max 1 or more"
  )

  /** The same with another target, as near as its bounds allow. */
  def aimingAt(slots: Int): ResourceRequirement = copy(target = slots.max(min).min(max))
}

object ResourceRequirement {

  /** The bytes decide, and the cluster is asked for what they need. */
  def active(target: Int, max: Int, spec: ResourceSpec = ResourceSpec()): ResourceRequirement =
    ResourceRequirement(1, target.max(1).min(max), max, spec)

  /** The cluster is what it is, and all of it can be used. */
  def reactive(max: Int, spec: ResourceSpec = ResourceSpec()): ResourceRequirement =
    ResourceRequirement(1, max, max, spec)

  /** Somebody set the parallelism: no slot fewer or more. */
  def explicitly(parallelism: Int, spec: ResourceSpec = ResourceSpec()): ResourceRequirement =
    ResourceRequirement(parallelism, parallelism, parallelism, spec)
}
