package io.apportion.resources.planned

import io.apportion.decision.ResourceRequirement

/** Distributes the available task slots to stages or groups of stages. */
object SlotDistribution {

  /**
   * The slots of each group, in the given order. `None` if there are too few slots for all minimums.
   *
   * Every group first gets its minimum. The remaining slots are shared evenly. A group that reaches its target leaves
   * the rest of its share to the others, so groups are served in the order of their range (target minus minimum), the
   * smallest first. Slots that cannot be shared evenly go to the first groups in the given order, one slot each.
   */
  def deal(slots: Int, groups: Seq[ResourceRequirement]): Option[Seq[Int]] = {
    val rest = slots - groups.map(_.min.toLong).sum
    Option.when(rest >= 0) {
      val ranges = groups.map(group => group.target - group.min)
      val shares = share(rest, ranges.zipWithIndex.sorted)
      groups.indices.map(i => groups(i).min + shares(i))
    }
  }

  /** @param ranges the range and the place of each group, the smallest range first */
  private def share(rest: Long, ranges: Seq[(Int, Int)]): Map[Int, Int] = ranges match {
    case Seq()                                                          => Map.empty
    case (range, place) +: larger if range.toLong * ranges.size <= rest =>
      share(rest - range, larger) + (place -> range)
    case _ =>
      val (even, odd) = ((rest / ranges.size).toInt, (rest % ranges.size).toInt)
      ranges
        .map(_._2)
        .sorted
        .zipWithIndex
        .map { case (place, order) => place -> (even + (if (order < odd) 1 else 0)) }
        .toMap
  }
}
