package io.apportion.history

/**
 * Output of an exchange in one run of its query.
 *
 * @param literals  digest of the literals of the plan below the exchange; empty if it is unknown
 * @param stored    bytes as the shuffle stores them
 * @param expanded  bytes of the rows that these become
 * @param leafBytes known bytes of the files and tables that the plan below the exchange reads
 * @param overload  mean bytes of a shuffle partition, as a multiple of the target size per task; 1 if it is not above the target
 * @param at        milliseconds since 1970
 */
private[apportion] final case class Run(
    literals: String,
    stored: Long,
    expanded: Long,
    leafBytes: Long,
    overload: Double,
    at: Long
) {

  /** This run as if it had read other bytes; None if they are so many more or fewer that the run says nothing about them. */
  def scaledTo(leafBytesNow: Long): Option[Run] = {
    val growth = if (leafBytes == 0 || leafBytesNow == 0) 1.0 else leafBytesNow.toDouble / leafBytes
    Option.when(growth <= Run.MaxGrowth && growth >= 1 / Run.MaxGrowth)(
      copy(stored = (stored * growth).toLong, expanded = (expanded * growth).toLong, leafBytes = leafBytesNow)
    )
  }

  /** Whether the sizes of the other run are within 5 percent. */
  def isNear(other: Run): Boolean =
    Seq(stored -> other.stored, expanded -> other.expanded, leafBytes -> other.leafBytes)
      .forall { case (one, two) => (one - two).abs <= one / Run.Near }
}

private[apportion] object Run {
  private val MaxGrowth = 8.0
  private val Near = 20
}

/**
 * Prediction of an exchange's output.
 *
 * @param stored       bytes as the shuffle stores them, scaled to the bytes that the plan reads now
 * @param expanded     bytes of the rows that these become
 * @param sameLiterals whether a run with the same literals produced them
 */
private[apportion] final case class Remembered(stored: Long, expanded: Long, sameLiterals: Boolean)

/** The recent runs of one exchange, oldest first. */
private[apportion] final class Runs private (val recent: Seq[Run]) {
  import Runs._

  /**
   * These and one more. A run like all recent runs with its literals adds nothing. Otherwise it is kept, so that runs of another
   * size leave after [[MaxRecent]] newer ones.
   */
  def add(run: Run): Runs = {
    val alike = recent.filter(_.literals == run.literals)
    if (alike.nonEmpty && alike.forall(_.isNear(run))) this
    else new Runs((recent.filter(_ != run) :+ run).sortBy(_.at).takeRight(MaxRecent))
  }

  def add(runs: Runs): Runs = runs.recent.foldLeft(this)(_.add(_))

  /** The largest of the runs with these literals, else of all runs, among those whose input was not too different. */
  def predict(literals: String, leafBytes: Long): Option[Remembered] = {
    val scaled = recent.flatMap(_.scaledTo(leafBytes))
    val alike = scaled.filter(_.literals == literals)
    val known = if (alike.isEmpty) scaled else alike
    Option.when(known.nonEmpty)(Remembered(known.map(_.stored).max, known.map(_.expanded).max, alike.nonEmpty))
  }
}

private[apportion] object Runs {
  private val MaxRecent = 8

  val none = new Runs(Nil)

  def of(runs: Seq[Run]): Runs = new Runs(runs.sortBy(_.at).takeRight(MaxRecent))
}
