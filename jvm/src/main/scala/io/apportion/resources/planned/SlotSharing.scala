package io.apportion.resources.planned

import io.apportion.decision.ResourceRequirement
import org.apache.spark.apportion.ResourceSpec

/**
 * The task slots that a stage needs.
 *
 * @param profile id of the resource profile; stages with the same profile share slots
 * @param depth   number of stages that must run before it, one after the other; stages of equal depth can run at the
 *                same time
 * @param spec    resources of one slot
 */
final case class StageNeed(profile: Int, depth: Int, requirement: ResourceRequirement, spec: ResourceSpec)

/** Adds up the requirements of stages and groups of stages. */
object SlotSharing {

  /** The requirement of stages that share slots: the maximum of each bound. */
  def within(stages: Seq[ResourceRequirement]): ResourceRequirement =
    combined(stages)(_ max _)

  /** The requirement of groups that do not share slots: the sum of each bound. */
  def across(groups: Seq[ResourceRequirement]): ResourceRequirement =
    combined(groups)(sum)

  def sum(one: Int, other: Int): Int = (one.toLong + other).min(Int.MaxValue.toLong).toInt

  /** The requirement of each group of stages with the same profile, by profile. */
  def groups(stages: Seq[StageNeed]): Map[Int, ResourceRequirement] =
    stages.groupMap(_.profile)(_.requirement).map { case (profile, own) => profile -> within(own) }

  /** The largest number of slots that stages can fill at the same time. */
  def atOnce(stages: Seq[StageNeed]): Long =
    stages.groupMapReduce(_.depth)(_.requirement.target.toLong)(_ + _).values.maxOption.getOrElse(0L)

  private def combined(all: Seq[ResourceRequirement])(combine: (Int, Int) => Int): ResourceRequirement = {
    require(all.nonEmpty, "no stage or group was given; at least one is needed")
    all.reduce { (one, other) =>
      ResourceRequirement(
        combine(one.min, other.min),
        combine(one.target, other.target),
        combine(one.max, other.max)
      )
    }
  }
}
