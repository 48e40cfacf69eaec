package io.apportion.history

/**
 * What a stage of a query costs. Times are milliseconds.
 *
 * @param tasks   number of tasks
 * @param millis  time in which all tasks together held slots
 * @param longest time of the longest task
 * @param delay   time that the driver needs before the tasks can start, after the stages in `after` have ended
 * @param after   places of the stages that must end before; they come earlier in the list
 */
private[apportion] final case class StageCost(
    tasks: Int,
    millis: Long,
    longest: Long,
    delay: Long = 0,
    after: Seq[Int] = Nil
) {

  /** The cost for this multiple of the input. The rows of a task are the same, so there are more tasks. */
  def times(growth: Double): StageCost = {
    val scaled = math.ceil(tasks * growth).max(1).min(Int.MaxValue.toDouble).toInt
    val total = (millis * growth).toLong
    copy(tasks = scaled, millis = total, longest = longest.min(total).max(total / scaled))
  }
}

/**
 * What the stages of a query cost in one run.
 *
 * @param tail milliseconds from the end of the last stage to the end of the query
 */
private[apportion] final case class QueryCost(stages: Seq[StageCost], tail: Long = 0) {
  def millis: Long = stages.map(_.millis).sum

  def times(growth: Double): QueryCost = copy(stages = stages.map(_.times(growth)))

  /** Whether the next run would learn the same from both. Run times differ by some percent between equal runs. */
  def isNear(other: QueryCost): Boolean =
    stages.size == other.stages.size && (millis - other.millis).abs <= millis / QueryCost.Near
}

private[apportion] object QueryCost {
  private val Near = 20
}
