package io.apportion.decision

/** Kind of place that a value of a [[Policy]] comes from. Event logs have the name; the simulator reads it. */
sealed abstract class SourceKind(val name: String)

object SourceKind {
  case object Default extends SourceKind("default")

  /** Set in the running session. */
  case object Session extends SourceKind("session")

  /** Set when the application was submitted. */
  case object Submitted extends SourceKind("submit")
  case object SparkDefaults extends SourceKind("spark-defaults")

  /** A rule of the policy file. */
  case object PolicyRule extends SourceKind("policy-rule")
  case object Hint extends SourceKind("hint")
  case object ReaderOption extends SourceKind("reader-option")

  /** Map tasks, which decide how finely they write. */
  case object MapTasks extends SourceKind("adaptive")

  /** A conf or a number of Spark's. */
  case object Spark extends SourceKind("spark")

  /** A write that has a partition size of its own. */
  case object Write extends SourceKind("write")

  /** A rebalance or a write, whose partitions exist for their size. */
  case object RequestedSize extends SourceKind("requested-size")

  /** A join in the same stage that multiplies rows. */
  case object MultipliedRows extends SourceKind("multiplied-rows")

  /** An earlier run of the query in this application. */
  case object EarlierRun extends SourceKind("earlier-run")
}

/**
 * Place that a value of a [[Policy]] comes from.
 *
 * @param text the same for people, such as "hint on the query block, line 3"
 */
final case class ValueSource(kind: SourceKind, text: String)

object ValueSource {
  val Default: ValueSource = ValueSource(SourceKind.Default, "default")
}
