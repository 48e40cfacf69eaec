package io.apportion.resources

import scala.annotation.tailrec

import io.apportion.decision.ResourceRequirement

/** Where a query stands with its slots. */
sealed abstract class Phase(val name: String)

object Phase {

  /** Has fewer than its minimum: no stage starts before it has, and at the deadline it fails. */
  final case class Waiting(deadline: Long) extends Phase("waiting")

  /** Has its minimum, but not its target, and the number has changed a moment ago: more may come. */
  final case class Stabilizing(deadline: Long) extends Phase("stabilizing")

  case object Running extends Phase("running")

  /** Runs, while slots that it asked for later are on their way, or were not given by the deadline. */
  final case class Rescaling(deadline: Long) extends Phase("rescaling")

  /** Had fewer than its minimum for as long as it waits. */
  case object Failed extends Phase("failed")
}

/**
 * How long things are waited for, in milliseconds.
 *
 * @param timeout       for the minimum, and for what was asked for
 * @param stabilization for another change of the slots, before a start with fewer than the target
 * @param cooldown      between two changes of what is asked for
 */
final case class SlotTimeouts(timeout: Long, stabilization: Long, cooldown: Long) {
  require(
    timeout >= 0 && stabilization >= 0 && cooldown >= 0,
    s"timeout is $timeout, stabilization is $stabilization and cooldown is $cooldown ms; each must be 0 or more"
  )
}

/**
 * A query that needs slots.
 *
 * @param asks whether the cluster is asked for its target
 * @param most the most slots that it had, of those that it can use
 */
final case class QuerySlots(
    need: ResourceRequirement,
    timeouts: SlotTimeouts,
    asks: Boolean,
    phase: Phase,
    most: Int = 0
)

/**
 * What the cluster is asked for.
 *
 * @param at        when it was asked for
 * @param cooldown  milliseconds until another number may be asked for
 * @param idleSince when the last query that asks has ended, if no other runs
 */
final case class Declared(slots: Int, at: Long, cooldown: Long, idleSince: Option[Long] = None)

/**
 * Where the queries of an application stand with their slots: a state machine without a clock or a cluster. It is told what happened
 * and when, in milliseconds that never go back, and the next state says who may go on, who has failed and what to ask for.
 *
 * @param slots     of the registered executors
 * @param changedAt when their number changed last
 */
final case class SlotState(
    slots: Int = 0,
    changedAt: Long = 0,
    declared: Option[Declared] = None,
    queries: Map[Long, QuerySlots] = Map.empty
) {
  import Phase._

  /** A query begins: it waits until it may run. One that has begun goes on as it is. */
  def begin(id: Long, need: ResourceRequirement, timeouts: SlotTimeouts, asks: Boolean, now: Long): SlotState =
    if (queries.contains(id)) at(now)
    else copy(queries = queries.updated(id, QuerySlots(need, timeouts, asks, Waiting(now + timeouts.timeout)))).at(now)

  /** A query would like another number of slots. */
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

  /** Executors came or went. */
  def slotsAre(n: Int, now: Long): SlotState =
    if (n == slots) at(now) else copy(slots = n, changedAt = now).at(now)

  /** The same when time has passed. */
  def at(now: Long): SlotState =
    copy(queries = queries.map { case (id, query) => id -> settled(query, now) }).declaring(now)

  /** When [[at]] says something new if nothing happens before. */
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

  /** How many fewer slots a query has than it had. */
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

  /** The largest target, as queries share slots, and no less than any query's minimum; None if no query asks. */
  private def wanted: Option[Int] = asking.map(_.need.target).maxOption.map(_.max(unfailed.map(_.need.min).max))

  private def asking: Iterable[QuerySlots] = unfailed.filter(_.asks)

  private def unfailed: Iterable[QuerySlots] = queries.values.filter(_.phase != Failed)

  private def cooldown: Long = asking.map(_.timeouts.cooldown).maxOption.getOrElse(0L)

  /**
   * Says what is wanted: at once if a query waits for it, else when the last change has cooled down. When no query has asked for as
   * long, nothing is declared any more.
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
