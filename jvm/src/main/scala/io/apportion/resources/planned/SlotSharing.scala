package io.apportion.resources.planned

import io.apportion.decision.ResourceRequirement

/** Adds up the requirements of stages and groups of stages. */
private[planned] object SlotSharing {

  /** The requirement of stages that share slots: the maximum of each bound. */
  def within(stages: Seq[ResourceRequirement]): ResourceRequirement = combined(stages)(_ max _, _ max _)

  /** The requirement of groups that do not share slots: the sum of each bound. */
  def across(groups: Seq[ResourceRequirement]): ResourceRequirement = combined(groups)(sum, sum)

  /** The requirement of a stage with several parts. They run at the same time, but the stage starts with one of them. */
  def ofParts(parts: Seq[ResourceRequirement]): ResourceRequirement = combined(parts)(_ max _, sum)

  private def sum(one: Int, other: Int): Int = (one.toLong + other).min(Int.MaxValue.toLong).toInt

  private def combined(
      all: Seq[ResourceRequirement]
  )(mins: (Int, Int) => Int, others: (Int, Int) => Int): ResourceRequirement =
    all.reduce { (one, other) =>
      ResourceRequirement(mins(one.min, other.min), others(one.target, other.target), others(one.max, other.max))
    }
}
