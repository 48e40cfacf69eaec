package io.apportion.resources.planned

import io.apportion.decision.ResourceRequirement

/** Deals slots to groups that would like more of them than there are. */
object SlotDistribution {

  /**
   * The slots of each group, in the order given; None if there are too few for all minimums. Every group has its minimum first. The
   * rest is shared evenly, and what a group cannot use of its share, up to its target, is shared by the others: so groups are served
   * from the smallest range (target less minimum) up. What cannot be shared evenly goes to the first groups in order, one slot each.
   */
  def deal(slots: Int, groups: Seq[ResourceRequirement]): Option[Seq[Int]] = {
    val rest = slots - groups.map(_.min.toLong).sum
    Option.when(rest >= 0) {
      val ranges = groups.map(group => group.target - group.min)
      val shares = share(rest, ranges.zipWithIndex.sorted)
      groups.indices.map(i => groups(i).min + shares(i))
    }
  }

  /** @param ranges with the places of their groups, the smallest first */
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
