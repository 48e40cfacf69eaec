package io.apportion.history

/**
 * Recorded size of an exchange's output in one run of its query.
 *
 * @param literals  digest of the literals in the plan below the exchange; empty if it is unknown
 * @param stored    bytes as the shuffle stores them
 * @param expanded  bytes of the uncompressed rows
 * @param leafBytes known bytes of the files and tables that the plan below the exchange reads
 * @param overload  mean bytes of a shuffle partition, as a multiple of the target size per task; at least 1
 * @param at        time of the run, in milliseconds since 1970
 * @param stage     what the tasks that read the exchange needed, if the entry is about these tasks
 * @param query     what the stages of a query cost, if the entry is about a query
 */
private[apportion] final case class Run(
    literals: String,
    stored: Long,
    expanded: Long,
    leafBytes: Long,
    overload: Double,
    at: Long,
    stage: Option[StageRun] = None,
    query: Option[QueryCost] = None
) {

  /** This run, scaled to another size of the input; `None` if that changed by more than a factor of `MaxGrowth`. */
  def scaledTo(leafBytesNow: Long): Option[Run] = {
    val growth = if (leafBytes == 0 || leafBytesNow == 0) 1.0 else leafBytesNow.toDouble / leafBytes
    Option.when(growth <= Run.MaxGrowth && growth >= 1 / Run.MaxGrowth)(
      copy(
        stored = (stored * growth).toLong,
        expanded = (expanded * growth).toLong,
        leafBytes = leafBytesNow,
        query = query.map(cost => if (growth == 1) cost else cost.times(growth))
      )
    )
  }

  /** Whether all recorded sizes of the two runs differ by at most 5 percent, and the tasks needed the same. */
  def isNear(other: Run): Boolean =
    Seq(stored -> other.stored, expanded -> other.expanded, leafBytes -> other.leafBytes)
      .forall { case (one, two) => (one - two).abs <= one / Run.Near } &&
      stage.size == other.stage.size && stage.zip(other.stage).forall { case (one, two) => one.isNear(two) } &&
      query.size == other.query.size && query.zip(other.query).forall { case (one, two) => one.isNear(two) }
}

private[apportion] object Run {

  /** Maximum factor by which sizes are scaled. */
  val MaxGrowth = 8.0
  private val Near = 20
}

/**
 * Recorded size of an exchange's output, scaled to the bytes that the plan reads now. It predicts the next output.
 *
 * @param stored       bytes as the shuffle stores them
 * @param expanded     bytes of the uncompressed rows
 * @param sameLiterals whether the recorded runs had the same literals
 */
private[apportion] final case class Remembered(stored: Long, expanded: Long, sameLiterals: Boolean)

/** The history's entry for one exchange: its recent runs, oldest first. */
private[apportion] final class Runs private (val recent: Seq[Run]) {
  import Runs._

  /**
   * This entry with one more run. The entry stays the same if all recent runs with these literals have similar sizes.
   * Otherwise the run is kept, so that runs of another size are dropped after [[MaxRecent]] newer runs.
   */
  def add(run: Run): Runs = {
    val alike = recent.filter(_.literals == run.literals)
    if (alike.nonEmpty && alike.forall(_.isNear(run))) this
    else new Runs((recent.filter(_ != run) :+ run).sortBy(_.at).takeRight(MaxRecent))
  }

  def add(runs: Runs): Runs = runs.recent.foldLeft(this)(_.add(_))

  /**
   * Largest recorded sizes of the runs with these literals, else of all runs. Runs of a very different input are
   * ignored.
   */
  def predict(literals: String, leafBytes: Long): Option[Remembered] = {
    val scaled = recent.flatMap(_.scaledTo(leafBytes))
    val alike = scaled.filter(_.literals == literals)
    val known = if (alike.isEmpty) scaled else alike
    Option.when(known.nonEmpty)(Remembered(known.map(_.stored).max, known.map(_.expanded).max, alike.nonEmpty))
  }

  /**
   * What the query will cost: the median of its runs, scaled to the bytes that it reads now. A slow run on a cold
   * cluster must not count for all later ones.
   */
  def cost(leafBytes: Long): Option[QueryCost] = {
    val costs = recent.flatMap(_.scaledTo(leafBytes)).flatMap(_.query).sortBy(_.millis)
    Option.when(costs.nonEmpty)(costs((costs.size - 1) / 2))
  }
}

private[apportion] object Runs {
  private val MaxRecent = 8

  val none = new Runs(Nil)

  def of(runs: Seq[Run]): Runs = new Runs(runs.sortBy(_.at).takeRight(MaxRecent))
}
