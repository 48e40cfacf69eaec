package io.apportion.settings

/** A group of settings. Each group is a section of `docs/settings.md` and a table of the `apportion settings` command. */
final class Category private (val title: String)

object Category {
  val General: Category = new Category("General")
  val TasksPerStage: Category = new Category("Tasks per stage")
  val ShufflePartitions: Category = new Category("Shuffle partitions")
  val FileScans: Category = new Category("File scans")
  val Hints: Category = new Category("Hints")
  val TaskSlots: Category = new Category("Task slots and executors")
  val Reporting: Category = new Category("Reporting")

  /** All categories in reading order. */
  val all: Seq[Category] = Seq(General, TasksPerStage, ShufflePartitions, FileScans, Hints, TaskSlots, Reporting)
}
