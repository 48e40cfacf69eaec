package io.apportion.settings

/** A group of settings. Each group is a section of `docs/settings.md` and a table of the `apportion settings` command. */
final class Category private (val title: String)

object Category {
  val General: Category = new Category("General")
  val TasksPerStage: Category = new Category("Tasks per stage")
  val FileScans: Category = new Category("File scans")
  val Hints: Category = new Category("Hints")
  val TaskSlots: Category = new Category("Task slots and executors")
  val Reporting: Category = new Category("Reporting")

  /** Settings that are not documented, as only tests have a reason to change them. */
  val Internal: Category = new Category("Internal")

  /** The documented categories in reading order. */
  val all: Seq[Category] = Seq(General, TasksPerStage, FileScans, Hints, TaskSlots, Reporting)
}
