package io.apportion.report

import io.apportion.decision.{Decider, Input, Policy, ResourceRequirement}
import org.scalatest.funsuite.AnyFunSuite

class DecisionRecordSuite extends AnyFunSuite {
  private val MiB = 1L << 20

  private val filling = Policy(dataVolumePerTask = 64 * MiB, slots = Some(16), maxParallelism = 64)

  private def record(bytes: Long, subpartitions: Int, policy: Policy): DecisionRecord =
    DecisionRecord.of(
      Decider.decide(Seq(new Input(Array.fill(subpartitions)(bytes / subpartitions))), policy),
      policy
    )

  test("a stage that fills slots in reactive mode declares all slots that it can use") {
    val found = record(128 * MiB, 128, filling)
    assert(found.tasks == 16 && found.slotsAskedFor == 16)
    assert(found.requirement.contains(ResourceRequirement.reactive(64)))
  }

  test("a stage that fills registered slots under dynamic allocation declares the slots that its bytes need") {
    val found = record(128 * MiB, 128, filling.copy(declaresSlots = false))
    assert(found.tasks == 16 && found.slotsAskedFor == 2)
    assert(found.requirement.contains(ResourceRequirement.active(2, 64)))
  }

  test("a stage with fewer slots than its bytes need declares the slots that its bytes need") {
    val found = record(1 << 30, 128, filling.copy(slots = Some(2), declaresSlots = false))
    assert(found.tasks == 16 && found.requirement.contains(ResourceRequirement.active(16, 64)))
  }

  test("limited_by_partitions is the ratio of needed tasks to shuffle partitions") {
    def limit(subpartitions: Int): Any =
      DecisionTable.row(record(1 << 30, subpartitions, filling.copy(slots = None))).getAs[Any]("limited_by_partitions")
    assert(limit(4) == 4.0)
    assert(limit(128) == null)
  }
}
