package io.apportion.resources.deadlines

import scala.collection.mutable

import io.apportion.history.{QueryCost, StageCost}

/**
 * The stages of a running query: what they have cost, and what is left. Times are milliseconds of one clock.
 *
 * A stage waits for the stages whose shuffles it reads. Spark's events do not show which broadcasts and subqueries it
 * reads, so it counts as waiting for each of these that has ended before.
 *
 * @param start time at which the query began
 */
private[resources] final class QueryProgress(val start: Long) {
  import QueryProgress._

  private val stages = mutable.ArrayBuffer.empty[Seen]

  /** Shuffle that each stage of a job writes. Jobs have stages that they skip, too. */
  private val written = mutable.Map.empty[Int, Int]
  private val running = mutable.Set.empty[Int]
  private var firstJobAt = Option.empty[Long]

  /** The speed of its tasks. */
  val taskSpeed = new TaskSpeed

  /** @param writes stages of the job, and the shuffle that each writes */
  def jobStarts(job: Int, writes: Seq[(Int, Int)], now: Long): Unit = {
    firstJobAt = firstJobAt.orElse(Some(now))
    running += job
    written ++= writes
  }

  def jobEnds(job: Int): Unit = running -= job

  /** The jobs that run. */
  def jobs: Set[Int] = running.toSet

  /** Time since the first job started. */
  def runningMillis(now: Long): Long = firstJobAt.fold(0L)(now - _)

  /**
   * Counts a stage when it starts, because Spark does not submit stages of a job again that ran before.
   *
   * @param parents stages that the stage reads, also if the job skips them
   */
  def stageStarts(id: Int, tasks: Int, parents: Seq[Int], now: Long): Unit = {
    if (!stages.exists(_.id == id)) {
      val writes = written.get(id)
      val reads = parents.flatMap(written.get)
      val read = stages.indices.filter(place => stages(place).writes.exists(reads.contains))
      val collected = stages.indices.filter(place => stages(place).writes.isEmpty && stages(place).ended.isDefined)
      val after = direct((read ++ collected).distinct)
      stages += new Seen(id, tasks.max(1), writes, after, after.toSet ++ after.flatMap(stages(_).before), now)
    }
    // Another attempt runs only the tasks whose output was lost.
    stages.find(_.id == id).foreach(_.starts(tasks))
  }

  /** Counts a task that succeeded. */
  def taskEnds(id: Int, millis: Long): Unit = for (stage <- stages.find(_.id == id)) {
    stage.finished += 1
    stage.open -= 1
    stage.millis += millis
    stage.longest = stage.longest.max(millis)
  }

  def stageEnds(id: Int, now: Long): Unit = stages.find(_.id == id).foreach(_.ended = Some(now))

  /** Number of tasks of the largest stage that has tasks to run. */
  def largestStage: Int = unfinished.map(_.attempted).maxOption.getOrElse(0)

  /** Number of tasks of submitted stages that have not finished. */
  def openTasks: Long = unfinished.map(_.open.toLong).sum

  private def unfinished = stages.iterator.filter(stage => stage.ended.isEmpty && stage.open > 0)

  /** What the query has cost, at its end. `None` if it ran no stage, or events were lost. */
  def cost(now: Long): Option[QueryCost] =
    Option.when(stages.nonEmpty && stages.forall(stage => stage.ended.isDefined && stage.finished > 0))(
      QueryCost(stages.map(stage => stage.cost(delayOf(stage))).toSeq, (now - stages.flatMap(_.ended).max).max(0))
    )

  /**
   * What is left of the query, if it costs as much as in an earlier run. Stages that have ended are left out. The times
   * of the others are corrected by the speed of this run.
   */
  def left(expected: QueryCost): QueryCost = {
    val matched = matching(expected.stages)
    val speed = slowdown(expected, matched)
    val byPlace = matched.map { case (seen, place) => place -> seen }
    val remaining = expected.stages.indices.filterNot(place => byPlace.get(place).exists(_.ended.isDefined))
    val numbers = remaining.zipWithIndex.toMap
    val costs = remaining.map { place =>
      val stage = slowed(expected.stages(place), speed)
      val left = byPlace.get(place).fold(stage)(_.left(stage))
      left.copy(after = left.after.flatMap(numbers.get))
    }
    // Stages that the earlier run did not have.
    val others =
      stages.filter(seen => seen.ended.isEmpty && !matched.contains(seen)).map(seen => seen.left(seen.cost(0)))
    QueryCost(costs ++ others.map(_.copy(after = Nil)), expected.tail)
  }

  private def delayOf(stage: Seen): Long = {
    val ready = stage.after.flatMap(stages(_).ended).maxOption.getOrElse(start)
    (stage.submitted - ready).max(0)
  }

  /** Leaves out stages that another one waits for already. */
  private def direct(after: Seq[Int]): Seq[Int] =
    after.filterNot(place => after.reverseIterator.exists(stages(_).before(place)))

  /**
   * The stage of the earlier run for each stage of this run. It waits for the same stages, and has the nearest number of
   * tasks. Stages that are ready together can start in another order.
   */
  private def matching(expected: Seq[StageCost]): Map[Seen, Int] = {
    val found = mutable.LinkedHashMap.empty[Seen, Int]
    for (seen <- stages) {
      val inputs = seen.after.map(stages(_)).map(found.get)
      val free = expected.indices.filterNot(found.values.toSet)
      val alike =
        free.filter(place => inputs.forall(_.isDefined) && expected(place).after.toSet == inputs.flatten.toSet)
      val nearest = (if (alike.isEmpty) free.filter(expected(_).tasks == seen.tasks) else alike)
        .sortBy(place => ((math.log(expected(place).tasks.toDouble) - math.log(seen.tasks.toDouble)).abs, place))
      nearest.headOption.foreach(found.update(seen, _))
    }
    found.toMap
  }

  /** How much slower this run is than the earlier one; 1 until it shows. */
  private def slowdown(expected: QueryCost, matched: Map[Seen, Int]): Double = {
    val ended = matched.toSeq.filter(_._1.ended.isDefined)
    val actual = ended.map(_._1.millis).sum.toDouble
    val earlier = ended.map { case (_, place) => expected.stages(place).millis }.sum
    if (earlier == 0 || earlier < expected.millis * LeastShown) 1.0
    else (actual / earlier).max(1 / MaxSlowdown).min(MaxSlowdown)
  }

  private def slowed(stage: StageCost, speed: Double): StageCost =
    stage.copy(millis = (stage.millis * speed).toLong, longest = (stage.longest * speed).toLong)
}

private object QueryProgress {

  /** Share of the query's work that must have ended before its speed counts. */
  private val LeastShown = 0.05
  private val MaxSlowdown = 4.0

  /**
   * @param after  places of the stages for which it waits, without those for which another one waits
   * @param before places of all stages that end before it starts
   */
  private final class Seen(
      val id: Int,
      val tasks: Int,
      val writes: Option[Int],
      val after: Seq[Int],
      val before: Set[Int],
      val submitted: Long
  ) {
    var finished = 0
    var millis, longest = 0L
    var ended = Option.empty[Long]

    /** Tasks of the last attempt, and those of them that have not finished. */
    var attempted, open = 0

    def starts(attempt: Int): Unit = {
      attempted = attempt
      open = attempt
      ended = None
    }

    def cost(delay: Long): StageCost = StageCost(tasks, millis, longest, delay, after)

    /** What is left of this stage. Its own tasks count, not the number of tasks in the earlier run. */
    def left(expected: StageCost): StageCost = {
      val left = open.max(1)
      val mean = if (finished > 0) millis.toDouble / finished else expected.millis.toDouble / tasks
      val total = (mean * left).toLong
      expected.copy(tasks = left, millis = total, longest = expected.longest.min(total), delay = 0)
    }
  }
}
