package io.apportion.settings

/**
 * The rules that `spark.apportion.rules.disabled` switches off. The names are public: a rule whose class gets another name keeps
 * its name here, see `Guarded.publicName`.
 */
object RuleNames {

  /**
   * A rule that can be switched off.
   *
   * @param withoutIt what happens while it is off, for the documentation
   */
  final case class Entry(name: String, withoutIt: String)

  val entries: Seq[Entry] = Seq(
    Entry("ResolveBlockHints", "Apportion's hints are removed from queries and not checked."),
    Entry("AssignBlocks", "Hints are checked, but they have no effect."),
    Entry("ScanTasks", "Spark decides how many tasks scan files."),
    Entry(
      "UserRepartitions",
      "A `repartition(n, columns)` that Spark drops as redundant does not keep its number of partitions."
    ),
    Entry("SubpartitionCounts", "Shuffles have the number of partitions that Spark gives them."),
    Entry(
      "KeepBroadcasts",
      "Spark does not broadcast the output of a shuffle with many empty partitions, also if Apportion added the partitions."
    ),
    Entry("AwaitSlots", "Queries start without waiting for task slots, and no executors are requested."),
    Entry(
      "DecideShuffleReads",
      "Spark coalesces shuffle partitions and splits skewed ones; no such decision is recorded."
    ),
    Entry("LocalReads", "Tasks do not read map outputs locally after Apportion has changed a layout."),
    Entry("ReportDecisions", "Decisions about shuffles are made but not recorded."),
    Entry("RememberOutputs", "The history does not get new entries. It is still read.")
  )

  val all: Seq[String] = entries.map(_.name)
}
