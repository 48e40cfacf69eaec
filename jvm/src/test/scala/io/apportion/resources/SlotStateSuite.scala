package io.apportion.resources

import io.apportion.decision.ResourceRequirement
import org.scalatest.funsuite.AnyFunSuite

class SlotStateSuite extends AnyFunSuite {
  import Phase._

  private val timeouts = SlotTimeouts(timeout = 300, stabilization = 10, cooldown = 30)
  private val need = ResourceRequirement(min = 2, target = 4, max = 8)

  private def begun(slots: Int, asks: Boolean = true): SlotState =
    SlotState(slots = slots, changedAt = -1000).begin(1, need, timeouts, asks, now = 0)

  private def phase(coordinator: SlotState): Phase = coordinator.queries(1).phase

  test("a query runs at once if its target is available") {
    assert(phase(begun(slots = 4)) == Running)
  }

  test("a query runs at once with fewer slots if their number is stable") {
    assert(phase(begun(slots = 2)) == Running)
  }

  test("a query with a minimum of 0 does not wait") {
    val any =
      SlotState(slots = 0).begin(1, need.copy(min = 0), timeouts.copy(stabilization = 0), asks = false, now = 0)
    assert(phase(any) == Running)
  }

  test("a query below its minimum waits for the minimum, then for a stable number of slots, and runs") {
    val one = begun(slots = 1)
    assert(phase(one) == Waiting(300) && one.mustWait(1))
    val two = one.slotsAre(2, now = 20)
    assert(phase(two) == Stabilizing(300) && two.mustWait(1))
    val three = two.slotsAre(3, now = 25)
    assert(phase(three.at(34)) == Stabilizing(300))
    assert(phase(three.at(35)) == Running && !three.at(35).mustWait(1))
  }

  test("a query runs at the timeout if it has its minimum, even if the number of slots is not stable") {
    val restless = (1 to 60).foldLeft(begun(slots = 1))((c, i) => c.slotsAre(2 + i % 2, now = 5L * i))
    assert(phase(restless) == Running)
    assert(
      phase((1 to 59).foldLeft(begun(slots = 1))((c, i) => c.slotsAre(2 + i % 2, now = 5L * i))) == Stabilizing(300)
    )
  }

  test("a query below its minimum at the timeout fails, and stays failed") {
    val failed = begun(slots = 1).at(299).at(300)
    assert(phase(failed) == Failed && failed.failed(1) && !failed.mustWait(1))
    assert(phase(failed.slotsAre(8, now = 301)) == Failed)
  }

  test(
    "a query that loses executors continues above its minimum, and its next stage waits below the minimum"
  ) {
    val three = begun(slots = 4).slotsAre(3, now = 50)
    assert(phase(three) == Running && three.lost(1) == 1)
    val one = three.slotsAre(1, now = 60)
    assert(phase(one) == Waiting(360) && one.lost(1) == 3)
    val back = one.slotsAre(4, now = 70)
    assert(phase(back) == Running && back.lost(1) == 0)
    assert(phase(one.at(360)) == Failed)
  }

  test("the target is requested at once, and a new target after the cooldown") {
    val first = begun(slots = 2)
    assert(first.declared.contains(Declared(4, 0, 30)))
    val more = first.retarget(1, 8, now = 5)
    assert(more.declared.contains(Declared(4, 0, 30)) && more.wakeAt.contains(30L))
    assert(phase(more) == Rescaling(305))
    assert(more.at(30).declared.contains(Declared(8, 30, 30)))
    assert(phase(more.at(30).slotsAre(8, now = 33)) == Running)
    assert(phase(more.at(305)) == Running, "not given, it goes on with what there is")
  }

  test("a missing minimum is requested without a cooldown") {
    val second = begun(slots = 4).begin(2, ResourceRequirement(6, 6, 6), timeouts, asks = true, now = 5)
    assert(second.declared.contains(Declared(6, 5, 30)))
  }

  test("a query that does not request slots declares none, and no request is above the maximum") {
    assert(begun(slots = 1, asks = false).declared.isEmpty)
    assert(begun(slots = 4).retarget(1, 1000, now = 40).declared.contains(Declared(8, 40, 30)))
  }

  test("queries that share slots request the largest target, and each waits only for its own minimum") {
    val both = begun(slots = 2).begin(2, ResourceRequirement(3, 6, 6), timeouts, asks = true, now = 40)
    assert(both.declared.contains(Declared(6, 40, 30)))
    assert(!both.mustWait(1) && both.mustWait(2))
    assert(both.end(2, now = 80).declared.contains(Declared(4, 80, 30)))
  }

  test("a request ends after the cooldown when no query requests slots") {
    val none = begun(slots = 4).end(1, now = 100)
    assert(none.queries.isEmpty && none.declared.map(_.slots).contains(4) && none.wakeAt.contains(130L))
    assert(none.at(129).declared.map(_.slots).contains(4))
    assert(none.at(130).declared.isEmpty && none.at(130).wakeAt.isEmpty)
  }

  test("a query that begins before a request ends takes over the request") {
    val again = begun(slots = 4).end(1, now = 100).begin(2, need, timeouts, asks = true, now = 110)
    assert(again.declared.contains(Declared(4, 0, 30)) && again.at(140).declared.contains(Declared(4, 0, 30)))
  }

  test("a request covers the minimum of a query that only waits, without a cooldown") {
    val waits = ResourceRequirement(6, 6, 6)
    val both = begun(slots = 4).begin(2, waits, timeouts, asks = false, now = 5)
    assert(both.declared.contains(Declared(6, 5, 30)))
    val alone = begun(slots = 4).end(1, now = 5).begin(2, waits, timeouts, asks = false, now = 6)
    assert(alone.declared.isEmpty)
  }

  test("queries share their slots, but queries with a deadline add up, within the maximum") {
    def queries(deadlines: Boolean*): Option[Int] = deadlines.zipWithIndex
      .foldLeft(SlotState(slots = 9)) { case (state, (hasDeadline, id)) =>
        state.begin(id.toLong, need, timeouts.copy(cooldown = 0), asks = true, now = 0, hasDeadline)
      }
      .declared
      .map(_.slots)
    assert(queries(false, false).contains(4))
    assert(queries(true, false).contains(8))
    assert(queries(true, true, false).contains(8), "the maximum")
  }
}
