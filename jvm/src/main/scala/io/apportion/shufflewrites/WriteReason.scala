package io.apportion.shufflewrites

/**
 * Why a shuffle has its number of partitions, and who writes it.
 *
 * @param kind [[WriteReason.Adaptive]] or [[WriteReason.Plain]], for programs
 * @param text reason for people
 */
private[apportion] final case class WriteReason(kind: String, text: String)

private[apportion] object WriteReason {

  /** Map tasks decide how finely they write. */
  val Adaptive = "adaptive"

  /** Spark writes the shuffle. */
  val Plain = "spark"
}
