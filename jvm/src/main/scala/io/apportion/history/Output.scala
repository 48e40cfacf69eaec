package io.apportion.history

/**
 * What an exchange produced when it ran last.
 *
 * @param stored    bytes, as shuffles store them
 * @param expanded  bytes of the rows that these become
 * @param leafBytes bytes that were known then of the files and tables that the plan below it reads
 */
private[apportion] final case class Output(stored: Long, expanded: Long, leafBytes: Long) {

  /**
   * How many times as much the plan reads now, as far as that is known; None if it is so much more or less that the output says
   * nothing any more.
   */
  def growth(leafBytesNow: Long): Option[Double] = {
    val times = if (leafBytes == 0 || leafBytesNow == 0) 1.0 else leafBytesNow.toDouble / leafBytes
    Option.when(times <= Output.MostGrowth && times >= 1 / Output.MostGrowth)(times)
  }

  /** Whether another output is so near that it need not be written. */
  def isNear(other: Output): Boolean =
    Seq(stored -> other.stored, expanded -> other.expanded, leafBytes -> other.leafBytes)
      .forall { case (one, two) => (one - two).abs <= one / Output.Near }
}

private[apportion] object Output {
  private val MostGrowth = 8.0
  private val Near = 20
}
