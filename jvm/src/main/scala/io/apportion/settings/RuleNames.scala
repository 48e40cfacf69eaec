package io.apportion.settings

/**
 * The rules that `spark.apportion.rules.disabled` can switch off. The names are public: if a class is renamed, its rule
 * keeps the name in this list; see `Guarded.publicName`.
 */
object RuleNames {

  /**
   * A rule that can be switched off.
   *
   * @param withoutIt description of what happens while the rule is off, for the documentation
   */
  final case class Entry(name: String, withoutIt: String)

  val entries: Seq[Entry] = Seq(
    Entry("ResolveBlockHints", "Apportion's hints are removed from queries and not checked."),
    Entry("ApplyPolicies", "The rules of the policy file have no effect."),
    Entry("AssignBlocks", "Hints are checked, but they have no effect."),
    Entry("ScanTasks", "Spark decides how many tasks scan files."),
    Entry(
      "UserRepartitions",
      "A `repartition(n, columns)` that Spark drops as redundant does not keep its number of partitions."
    ),
    Entry("AdaptiveWrites", "Spark writes its shuffles itself, in its own number of partitions."),
    Entry("DemoteBroadcasts", "Spark broadcasts tables that do not fit the heap of the driver or the executors."),
    Entry("PreferHashJoins", "Spark sorts both sides of joins whose smaller side fits a task's memory."),
    Entry("AwaitSlots", "Queries start without waiting for task slots, and no executors are requested."),
    Entry(
      "DecideShuffleReads",
      "Spark coalesces shuffle partitions and splits skewed ones. Apportion records no decisions about shuffles."
    ),
    Entry("LocalReads", "Tasks do not read map outputs locally after Apportion has changed a layout."),
    Entry("SizeFiles", "`write.targetFileSize` does not change the number of tasks that write files."),
    Entry("RebalanceWrites", "Apportion adds no rebalance before tables with partitions."),
    Entry("ReportDecisions", "Apportion makes decisions about shuffles but does not record them."),
    Entry("RememberBroadcasts", "Apportion adds no sizes of broadcasts to the history but still reads it.")
  )

  val all: Seq[String] = entries.map(_.name)
}
