package io.apportion.history

/**
 * One run in an entry: the size of a broadcast table, the needs of a stage, or the cost of a query.
 *
 * @param literals  digest of the literals in the plan of a broadcast table; empty for stages and queries
 * @param stored    bytes of the broadcast table, or bytes that the stage reads; 0 for a query
 * @param leafBytes known bytes of the files and tables that the plan reads; 0 for a stage
 * @param at        time of the run, in milliseconds since 1970
 * @param stage     what the tasks of a stage needed, if the entry is about a stage
 * @param query     what the stages of a query cost, if the entry is about a query
 */
private[apportion] final case class Run(
    literals: String,
    stored: Long,
    leafBytes: Long,
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
        leafBytes = leafBytesNow,
        query = query.map(cost => if (growth == 1) cost else cost.times(growth))
      )
    )
  }

  /** Whether all recorded sizes of the two runs differ by at most 5 percent, and the tasks needed the same. */
  def isNear(other: Run): Boolean =
    Seq(stored -> other.stored, leafBytes -> other.leafBytes)
      .forall { case (one, two) => (one - two).abs <= one / Run.Near } &&
      stage.size == other.stage.size && stage.zip(other.stage).forall { case (one, two) => one.isNear(two) } &&
      query.size == other.query.size && query.zip(other.query).forall { case (one, two) => one.isNear(two) }
}

private[apportion] object Run {

  /** Maximum factor by which sizes are scaled. */
  val MaxGrowth = 8.0
  private val Near = 20
}

/** An entry of the history: its recent runs, oldest first. */
private[apportion] final class Runs private (val recent: Seq[Run]) {
  import Runs._

  /**
   * This entry with one more run. The entry stays the same if all recent runs with these literals have similar sizes.
   * Otherwise the run is kept, so that runs of another size are dropped after [[MaxRecent]] newer runs.
   */
  def add(run: Run): Runs = {
    val earlier = alike(run.literals)
    if (earlier.nonEmpty && earlier.forall(_.isNear(run))) this
    else new Runs((recent.filter(_ != run) :+ run).sortBy(_.at).takeRight(MaxRecent))
  }

  def add(runs: Runs): Runs = runs.recent.foldLeft(this)(_.add(_))

  /** The runs with these literals. */
  def alike(literals: String): Seq[Run] = recent.filter(_.literals == literals)

  /** Largest size of the runs with these literals, scaled to the bytes that the plan reads now. */
  def predict(literals: String, leafBytes: Long): Option[Long] =
    alike(literals).flatMap(_.scaledTo(leafBytes)).map(_.stored).maxOption

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
