package io.apportion.resources.planned

import io.apportion.decision.ResourceRequirement
import org.apache.spark.apportion.ResourceSpec
import org.scalatest.funsuite.AnyFunSuite

class SlotSharingSuite extends AnyFunSuite {
  private val slot = ResourceSpec(1, memoryBytes = 1024, overheadBytes = 384, custom = Map("gpu" -> 0.5))
  private val scan = ResourceRequirement(1, 8, 64)
  private val join = ResourceRequirement(2, 32, 32)

  private def stage(depth: Int, requirement: ResourceRequirement) =
    PlannedStage("shuffle", "Scan", Nil, depth, bytes = None, tasks = 1, requirement, profile = 0, slot, why = "")

  test("stages that share slots need the largest of each bound") {
    assert(SlotSharing.within(Seq(scan, join)) == ResourceRequirement(2, 32, 64))
  }

  test("the requirements of groups that do not share slots add up") {
    val shared = SlotSharing.across(Seq(scan, join))
    assert((shared.min, shared.target, shared.max) == ((3, 40, 96)))
  }

  test("a query needs the sum, over its groups, of the largest stage of each group") {
    val query = SlotSharing.across(Seq(SlotSharing.within(Seq(scan, join)), SlotSharing.within(Seq(scan))))
    assert((query.min, query.target, query.max) == ((3, 40, 128)))
  }

  test("the parts of a stage run at once, but the stage starts with one of them") {
    assert(SlotSharing.ofParts(Seq(scan, join)) == ResourceRequirement(2, 40, 96))
  }

  test("stages of one depth can run at once") {
    val stages = Seq(stage(0, scan), stage(0, scan), stage(1, join))
    assert(PlannedStages.atOnce(stages) == 32)
    assert(PlannedStages.atOnce(stages :+ stage(0, join)) == 48)
    assert(PlannedStages.atOnce(Nil) == 0)
  }

  test("a sum of maximums does not overflow") {
    val most = ResourceRequirement.reactive(Int.MaxValue)
    assert(SlotSharing.across(Seq(most, most)).max == Int.MaxValue)
  }

  test("a sum of slots has the resources of both slots") {
    assert(slot + slot == ResourceSpec(2, memoryBytes = 2048, overheadBytes = 768, custom = Map("gpu" -> 1.0)))
    assert((slot + ResourceSpec(2, custom = Map("fpga" -> 1.0))).custom == Map("gpu" -> 0.5, "fpga" -> 1.0))
  }

  test("active, reactive and explicit requirements have their own bounds") {
    def bounds(need: ResourceRequirement) = (need.min, need.target, need.max)
    assert(bounds(ResourceRequirement.active(200, 32768)) == ((1, 200, 32768)))
    assert(bounds(ResourceRequirement.active(200, 64)) == ((1, 64, 64)))
    assert(bounds(ResourceRequirement.reactive(64)) == ((1, 64, 64)))
    assert(bounds(ResourceRequirement.explicitly(5)) == ((5, 5, 5)))
  }

  test("bounds out of order are refused with their values") {
    val refused = intercept[IllegalArgumentException](ResourceRequirement(4, 2, 8))
    assert(refused.getMessage.contains("min is 4, target is 2 and max is 8"))
  }
}
