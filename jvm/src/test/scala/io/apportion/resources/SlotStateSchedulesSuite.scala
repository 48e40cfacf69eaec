package io.apportion.resources

import scala.collection.mutable
import scala.util.Random

import io.apportion.decision.ResourceRequirement
import org.scalatest.funsuite.AnyFunSuite

/** The coordinator under a virtual clock: random schedules, and every state that it can reach. */
class SlotStateSchedulesSuite extends AnyFunSuite {
  import Phase._

  private val timeouts = SlotTimeouts(timeout = 300, stabilization = 10, cooldown = 30)
  private val need = ResourceRequirement(min = 2, target = 4, max = 6)

  /** What a schedule does, and the clock that it has moved on to. */
  private final class Schedule(random: Random) {
    var now = 0L
    var coordinator: SlotState = SlotState(slots = random.nextInt(4))
    val declared: mutable.ArrayBuffer[Declared] = mutable.ArrayBuffer.empty

    def step(next: SlotState): Unit = {
      val before = coordinator
      coordinator = next
      for (now <- next.declared if !before.declared.map(_.at).contains(now.at)) declared += now
    }

    /** Executors are killed and added, targets change, queries begin and end, and time passes. */
    def run(steps: Int): Unit = (1 to steps).foreach { _ =>
      now += random.nextInt(60)
      val query = random.nextInt(3).toLong
      step(random.nextInt(6) match {
        case 0 | 1 => coordinator.slotsAre((coordinator.slots - 1).max(0), now)
        case 2     => coordinator.slotsAre(coordinator.slots + 1, now)
        case 3     => coordinator.begin(query, need, timeouts, asks = true, now)
        case 4     => coordinator.retarget(query, random.nextInt(10), now)
        case _     => coordinator.end(query, now)
      })
    }

    /** From here on nothing happens but what the coordinator wants to be woken for. */
    def settle(): Unit = {
      var wakes = 0
      while (coordinator.wakeAt.isDefined) {
        assert(wakes < 20, s"it never stops waking: $coordinator")
        wakes += 1
        now = now.max(coordinator.wakeAt.get)
        step(coordinator.at(now))
      }
    }
  }

  test(
    "every wait ends within its bound in 200 random schedules, and requests keep the maximum and the cooldown"
  ) {
    for (seed <- 1 to 200) withClue(s"seed $seed: ") {
      val schedule = new Schedule(new Random(seed))
      schedule.run(50)
      for (query <- schedule.coordinator.queries.values) query.phase match {
        case Waiting(deadline)     => assert(deadline <= schedule.now + timeouts.timeout)
        case Stabilizing(deadline) => assert(deadline <= schedule.now + timeouts.timeout)
        case _                     =>
      }
      val stopped = schedule.now
      schedule.settle()
      assert(schedule.now <= stopped + timeouts.timeout + timeouts.cooldown)
      for ((id, query) <- schedule.coordinator.queries) {
        assert(!schedule.coordinator.mustWait(id))
        assert(query.phase == Failed || schedule.coordinator.slots >= need.min)
      }
      assert(schedule.declared.forall(_.slots <= need.max))
      for ((one, next) <- schedule.declared.zip(schedule.declared.drop(1)))
        assert(next.at - one.at >= timeouts.cooldown, s"$one, then $next")
    }
  }

  test("every reachable state ends as running or failed by waiting alone, in allowed steps") {
    // Times are relative to now, so that there are finitely many states.
    type Key = (Int, Long, Phase, Int, Option[(Int, Long)])
    def phaseFrom(phase: Phase, now: Long): Phase = phase match {
      case Waiting(at)     => Waiting(at - now)
      case Stabilizing(at) => Stabilizing(at - now)
      case Rescaling(at)   => Rescaling(at - now)
      case other           => other
    }
    def key(c: SlotState, now: Long): Key = {
      val query = c.queries(1)
      val asked = c.declared.map(last => (last.slots, (now - last.at).min(3)))
      (c.slots, (now - c.changedAt).min(2), phaseFrom(query.phase, now), query.need.target, asked)
    }
    val short = SlotTimeouts(timeout = 4, stabilization = 2, cooldown = 3)
    val small = ResourceRequirement(1, 2, 3)
    val allowed = Map(
      "waiting" -> Set("stabilizing", "running", "failed"),
      "stabilizing" -> Set("waiting", "running", "failed"),
      "running" -> Set("waiting", "stabilizing", "rescaling"),
      "rescaling" -> Set("waiting", "stabilizing", "running"),
      "failed" -> Set.empty[String]
    )
    val start =
      (0 to 2).map(n => (SlotState(slots = n, changedAt = -9).begin(1, small, short, asks = true, now = 0), 0L))
    val seen = mutable.Set.empty[Key]
    val queue = mutable.Queue(start: _*)
    val phases = mutable.Set.empty[String]
    while (queue.nonEmpty) {
      val (c, now) = queue.dequeue()
      if (seen.add(key(c, now))) {
        val was = c.queries(1).phase.name
        phases += was
        val next = (0 to 3).map(n => (c.slotsAre(n, now + 1), now + 1)) ++
          Seq(1, 3).map(target => (c.retarget(1, target, now + 1), now + 1)) :+ ((c.at(now + 1), now + 1))
        for ((after, _) <- next) {
          val is = after.queries(1).phase.name
          assert(is == was || allowed(was)(is), s"$was -> $is")
          assert(after.declared.forall(_.slots <= small.max))
          if (after.mustWait(1)) assert(after.wakeAt.isDefined, s"nothing would wake $after")
        }
        // Waiting alone ends every wait.
        val settled = (1L to 8L).foldLeft(c)((waiting, passed) => waiting.at(now + passed))
        assert(!settled.mustWait(1), s"$c still waits")
        queue ++= next
      }
    }
    assert(phases == allowed.keySet)
  }
}
