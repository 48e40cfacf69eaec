package io.apportion.resources.planned

import io.apportion.decision.ResourceRequirement

/**
 * A stage that needs slots.
 *
 * @param profile the resource profile: stages with the same one share slots
 * @param depth   stages that have to run before it, one after the other: those of equal depth can run at once
 */
final case class StageNeed(profile: Int, depth: Int, requirement: ResourceRequirement)

/** What stages that share slots need together. */
object SlotSharing {

  /** Of stages in the same slots: the largest of each bound, and a slot that is made for all of them. */
  def within(stages: Seq[ResourceRequirement]): ResourceRequirement =
    combined(stages)(_ max _)

  /** Of groups that have slots of their own: everything adds up. */
  def across(groups: Seq[ResourceRequirement]): ResourceRequirement =
    combined(groups)((one, other) => (one.toLong + other).min(Int.MaxValue.toLong).toInt)

  /** What each group of stages with one profile needs, by the profile. */
  def groups(stages: Seq[StageNeed]): Map[Int, ResourceRequirement] =
    stages.groupMap(_.profile)(_.requirement).map { case (profile, own) => profile -> within(own) }

  /** Slots that all stages which can run at once would fill together. */
  def atOnce(stages: Seq[StageNeed]): Long =
    stages.groupMapReduce(_.depth)(_.requirement.target.toLong)(_ + _).values.maxOption.getOrElse(0L)

  private def combined(all: Seq[ResourceRequirement])(combine: (Int, Int) => Int): ResourceRequirement = {
    require(all.nonEmpty, "no stage or group was given; one at least is needed")
    all.reduce { (one, other) =>
      ResourceRequirement(
        combine(one.min, other.min),
        combine(one.target, other.target),
        combine(one.max, other.max),
        one.spec + other.spec
      )
    }
  }
}
