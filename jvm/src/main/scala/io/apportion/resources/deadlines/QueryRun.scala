package io.apportion.resources.deadlines

import io.apportion.decision.Sentence
import io.apportion.history.{QueryCost, StageCost}

/**
 * A running query and its deadline. It is not thread-safe.
 *
 * @param costs        what the query cost in earlier runs, if its costs are recorded
 * @param finishWithin milliseconds from `start` within which the query must end, if it has a deadline
 * @param start        time at which the query began, in milliseconds
 */
private[resources] final class QueryRun(costs: Option[QueryCosts], finishWithin: Option[Long], start: Long) {
  val progress = new QueryProgress(start)
  private lazy val expected = costs.flatMap(_.expected)
  private var planned = Option.empty[Long]
  private var isWarned = false

  /**
   * The deadline and what is left, for a query with a deadline. `None` if neither an earlier run nor the bytes show it.
   *
   * @param byBytes what is left according to the bytes; it counts if the query has not run before
   */
  def toPlan(now: Long, byBytes: => Option[Seq[StageCost]]): Option[DeadlinePlan] =
    for {
      within <- finishWithin
      left <- expected.map(progress.left).orElse(byBytes.map(QueryCost(_)))
    } yield DeadlinePlan(within, (now - start).max(0), left)

  /** Keeps the expected time. Returns text for the log if the deadline cannot be met and this was not known before. */
  def expects(plan: SlotsForDeadline): Option[String] = {
    planned = Some(plan.millis)
    val isFirst = !plan.inTime && !isWarned
    isWarned ||= isFirst
    for (within <- finishWithin if isFirst)
      yield s"cannot end within ${within / 1000} seconds. On ${Sentence.count(plan.slots, "slot")}, the most that help, " +
        s"it is expected to take ${plan.millis / 1000} seconds."
  }

  /** The times of a query with a deadline. */
  def times(now: Long): Option[QueryTimes] = finishWithin.map(QueryTimes(_, planned, now - start))

  /** Records what the query has cost. */
  def end(now: Long): Unit = for (known <- costs; cost <- progress.cost(now)) known.add(cost)
}

/**
 * Times of a query with a deadline, in milliseconds from its begin.
 *
 * @param within  the deadline
 * @param planned expected time of the query, if it is known
 * @param elapsed time so far
 */
private[apportion] final case class QueryTimes(within: Long, planned: Option[Long], elapsed: Long)

/**
 * A deadline and what is left of its query. Times are milliseconds.
 *
 * @param elapsed time since the begin of the query
 */
private[apportion] final case class DeadlinePlan(within: Long, elapsed: Long, left: QueryCost) {

  /**
   * The smallest number of slots on which the query ends in time. It aims at an earlier end, because runs of a query
   * differ.
   *
   * @param supply all slots that it may use
   */
  def slots(supply: SlotSupply): SlotsForDeadline = {
    val inTasks = (within - elapsed - left.tail).max(0)
    val aimed = SlotsInTime.of(left.stages, (inTasks * DeadlinePlan.Aim).toLong, supply)
    aimed.copy(millis = elapsed + aimed.millis + left.tail, inTime = aimed.millis <= inTasks)
  }
}

private[apportion] object DeadlinePlan {

  /** Share of the time left that a plan uses. Equal runs differ by some percent. */
  private val Aim = 0.9
}
