package io.apportion.resources

import scala.annotation.tailrec

import io.apportion.decision.ResourceRequirement

/** The phase of a query that needs task slots. */
sealed abstract class Phase(val name: String)

object Phase {

  /** The query has fewer slots than its minimum. Its next stage does not start, and it fails at the deadline. */
  final case class Waiting(deadline: Long) extends Phase("waiting")

  /** The query has its minimum but not its target. It waits for a steady number of slots, because more may come. */
  final case class Stabilizing(deadline: Long) extends Phase("stabilizing")

  case object Running extends Phase("running")

  /** The query runs with fewer slots than its new target. This phase ends when it has them, or at the deadline. */
  final case class Rescaling(deadline: Long) extends Phase("rescaling")

  /** The query did not get its minimum before the deadline. */
  case object Failed extends Phase("failed")
}

/**
 * Timeouts in milliseconds.
 *
 * @param timeout       maximum wait for the minimum, and for a new target
 * @param stabilization time without a change of the slots before a query starts with fewer than its target
 * @param cooldown      minimum time between two changes of the request to the cluster manager
 */
final case class SlotTimeouts(timeout: Long, stabilization: Long, cooldown: Long) {
  require(
    timeout >= 0 && stabilization >= 0 && cooldown >= 0,
    s"timeout is $timeout, stabilization is $stabilization and cooldown is $cooldown ms; each must be 0 or more"
  )
}

/**
 * A query that needs task slots.
 *
 * @param asks        whether Apportion requests its target from the cluster manager
 * @param hasDeadline whether the query needs its target for itself, to end in time
 * @param most        largest number of slots that the query has had, up to its target
 */
final case class QuerySlots(
    need: ResourceRequirement,
    timeouts: SlotTimeouts,
    asks: Boolean,
    phase: Phase,
    hasDeadline: Boolean = false,
    most: Int = 0
)

/**
 * The current request to the cluster manager.
 *
 * @param slots     requested task slots
 * @param at        time of the request
 * @param cooldown  milliseconds from `idleSince` until Apportion withdraws the request
 * @param idleSince time at which the last query that requests slots has ended, if no such query runs
 */
final case class Declared(slots: Int, at: Long, cooldown: Long, idleSince: Option[Long] = None)

/**
 * The task slots of an application and the queries that need them: a state machine without a clock or a cluster. Its
 * input is events with times in milliseconds, which must not decrease. Each state tells which queries wait, which have
 * failed, and how many slots to request.
 *
 * @param slots     task slots of the registered executors
 * @param changedAt time of their last change
 */
final case class SlotState(
    slots: Int = 0,
    changedAt: Long = 0,
    declared: Option[Declared] = None,
    queries: Map[Long, QuerySlots] = Map.empty
) {
  import Phase._

  /** Adds a query, which waits until it may run. Does not change a query that was added before. */
  def begin(
      id: Long,
      need: ResourceRequirement,
      timeouts: SlotTimeouts,
      asks: Boolean,
      now: Long,
      hasDeadline: Boolean = false
  ): SlotState = {
    def begun = QuerySlots(need, timeouts, asks, Waiting(now + timeouts.timeout), hasDeadline)
    copy(queries = queries.updated(id, queries.getOrElse(id, begun))).at(now)
  }

  /** Changes the target of a query. */
  def retarget(id: Long, target: Int, now: Long): SlotState = queries.get(id) match {
    case Some(query) if query.need.aimingAt(target) != query.need =>
      val need = query.need.aimingAt(target)
      val phase = query.phase match {
        case Running | Rescaling(_) if slots < need.target => Rescaling(now + query.timeouts.timeout)
        case same                                          => same
      }
      copy(queries = queries.updated(id, query.copy(need = need, phase = phase))).at(now)
    case _ => at(now)
  }

  def end(id: Long, now: Long): SlotState = copy(queries = queries - id).at(now)

  /** Sets the number of task slots after executors were added or removed. */
  def slotsAre(n: Int, now: Long): SlotState =
    if (n == slots) at(now) else copy(slots = n, changedAt = now).at(now)

  /** The state at a later time. */
  def at(now: Long): SlotState =
    copy(queries = queries.map { case (id, query) => id -> settled(query, now) }).declaring(now)

  /** The next time at which [[at]] changes the state if no event happens before. */
  def wakeAt: Option[Long] = {
    val ofQueries = queries.values.flatMap { query =>
      query.phase match {
        case Waiting(deadline)     => Some(deadline)
        case Stabilizing(deadline) => Some(deadline.min(changedAt + query.timeouts.stabilization))
        case Rescaling(deadline)   => Some(deadline)
        case _                     => None
      }
    }
    val ofRequest = for (last <- declared; target <- wanted if target != last.slots) yield last.at + cooldown
    val ofRelease = for (last <- declared; since <- last.idleSince) yield since + last.cooldown
    (ofQueries ++ ofRequest ++ ofRelease).minOption
  }

  def mustWait(id: Long): Boolean = queries.get(id).map(_.phase).exists {
    case Waiting(_) | Stabilizing(_) => true
    case _                           => false
  }

  def failed(id: Long): Boolean = queries.get(id).exists(_.phase == Failed)

  /** The number of slots that a query has lost. */
  def lost(id: Long): Int = queries.get(id).fold(0)(query => (query.most - slots).max(0))

  @tailrec private def settled(query: QuerySlots, now: Long): QuerySlots = {
    val enough = slots >= query.need.min
    val all = slots >= query.need.target
    val next = query.phase match {
      case Waiting(deadline) if enough                                       => Stabilizing(deadline)
      case Waiting(deadline) if now >= deadline                              => Failed
      case Stabilizing(deadline) if !enough                                  => Waiting(deadline)
      case Stabilizing(deadline) if all || now >= deadline                   => Running
      case Stabilizing(_) if now >= changedAt + query.timeouts.stabilization => Running
      case Running | Rescaling(_) if !enough                                 => Waiting(now + query.timeouts.timeout)
      case Rescaling(deadline) if all || now >= deadline                     => Running
      case same                                                              => same
    }
    val most = if (next == Failed) query.most else query.most.max(slots.min(query.need.target))
    val changed = query.copy(phase = next, most = most)
    if (next == query.phase) changed else settled(changed, now)
  }

  /**
   * Slots to request, but at least each query's minimum. Queries share slots, so their largest target counts. Queries
   * with a deadline need their slots for themselves, so their targets are added.
   */
  private def wanted: Option[Int] = Option.when(asking.nonEmpty) {
    val (alone, sharing) = asking.partition(_.hasDeadline)
    val all = alone.map(_.need.target.toLong).sum + sharing.map(_.need.target.toLong).maxOption.getOrElse(0L)
    all.min(asking.map(_.need.max.toLong).max).toInt.max(unfailed.map(_.need.min).max)
  }

  private def asking: Iterable[QuerySlots] = unfailed.filter(_.asks)

  private def unfailed: Iterable[QuerySlots] = queries.values.filter(_.phase != Failed)

  private def cooldown: Long = asking.map(_.timeouts.cooldown).maxOption.getOrElse(0L)

  /**
   * Updates the request: at once if it is below a query's minimum, otherwise after the cooldown of the last request. If
   * no query requests slots for the time of the cooldown, the request is withdrawn.
   */
  private def declaring(now: Long): SlotState = (declared, wanted) match {
    case (Some(last), None) =>
      val since = last.idleSince.getOrElse(now)
      val isDue = now >= since + last.cooldown || isMissed(last)
      copy(declared = if (isDue) None else Some(last.copy(idleSince = Some(since))))
    case (Some(last), Some(target)) =>
      if (target != last.slots && (isMissed(last) || now >= last.at + cooldown)) declare(target, now)
      else copy(declared = Some(last.copy(idleSince = None)))
    case (None, Some(target)) => declare(target, now)
    case (None, None)         => this
  }

  private def isMissed(last: Declared): Boolean = unfailed.exists(_.need.min > last.slots)

  private def declare(target: Int, now: Long): SlotState = copy(declared = Some(Declared(target, now, cooldown)))
}
