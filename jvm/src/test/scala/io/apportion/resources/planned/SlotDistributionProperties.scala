package io.apportion.resources.planned

import io.apportion.decision.ResourceRequirement
import org.scalacheck.Gen
import org.scalatest.funsuite.AnyFunSuite
import org.scalatestplus.scalacheck.ScalaCheckPropertyChecks

class SlotDistributionProperties extends AnyFunSuite with ScalaCheckPropertyChecks {

  private val group: Gen[ResourceRequirement] = for {
    min <- Gen.chooseNum(0, 20)
    range <- Gen.chooseNum(0, 40)
  } yield ResourceRequirement(min, min + range, (min + range).max(1))

  private val groups = Gen.choose(1, 8).flatMap(Gen.listOfN(_, group))
  private val slots = Gen.chooseNum(0, 500)

  private def wanting(targets: (Int, Int)*): Seq[ResourceRequirement] =
    targets.map { case (min, target) => ResourceRequirement(min, target, target.max(1)) }

  test("every group gets its minimum, or there is no plan") {
    forAll(groups, slots) { (groups, slots) =>
      SlotDistribution.deal(slots, groups) match {
        case None        => assert(slots < groups.map(_.min).sum)
        case Some(dealt) => groups.zip(dealt).foreach { case (group, n) => assert(n >= group.min) }
      }
    }
  }

  test("no group gets more than its target, and no slot is left while a group is below its target") {
    forAll(groups, slots) { (groups, slots) =>
      for (dealt <- SlotDistribution.deal(slots, groups)) {
        groups.zip(dealt).foreach { case (group, n) => assert(n <= group.target) }
        assert(dealt.sum == slots.min(groups.map(_.target).sum))
      }
    }
  }

  test("above the minimums, no group gets two slots more than a group below its target") {
    forAll(groups, slots) { (groups, slots) =>
      for (dealt <- SlotDistribution.deal(slots, groups)) {
        val gains = groups.zip(dealt).map { case (group, n) => (n - group.min, n < group.target) }
        for ((less, wantsMore) <- gains if wantsMore; (more, _) <- gains) assert(more <= less + 1)
      }
    }
  }

  test("an additional slot takes no slot from any group") {
    forAll(groups, slots) { (groups, slots) =>
      for (dealt <- SlotDistribution.deal(slots, groups); more <- SlotDistribution.deal(slots + 1, groups))
        dealt.zip(more).foreach { case (before, after) => assert(after >= before) }
    }
  }

  test("the smallest range from minimum to target is filled first, and the first groups get the remainder") {
    assert(SlotDistribution.deal(10, wanting(1 -> 8, 1 -> 2, 1 -> 8)).contains(Seq(4, 2, 4)))
    assert(SlotDistribution.deal(9, wanting(1 -> 8, 1 -> 2, 1 -> 8)).contains(Seq(4, 2, 3)))
    assert(SlotDistribution.deal(4, wanting(1 -> 8, 1 -> 2, 1 -> 8)).contains(Seq(2, 1, 1)))
    assert(SlotDistribution.deal(2, wanting(1 -> 8, 1 -> 2, 1 -> 8)).isEmpty)
    assert(SlotDistribution.deal(5, Nil).contains(Nil))
  }
}
