package io.apportion.settings

/**
 * A group of settings. Each group is a section of `docs/settings.md` and a table of the `apportion settings` command.
 *
 * @param introduction first paragraph of the section, in Markdown
 */
final class Category private (val title: String, val introduction: String)

object Category {

  val General: Category = new Category(
    "General",
    "These settings switch Apportion on and off and choose how it uses the task slots of the cluster."
  )

  val TasksPerStage: Category = new Category(
    "Tasks per stage",
    "These settings control how many tasks read a shuffle, and which shuffle partitions each task reads. Change " +
      "`dataVolumePerTask` first. [Concepts](concepts.md) explains the formula, and [Ranges](ranges.md) the ranges."
  )

  val ShufflePartitions: Category = new Category(
    "Shuffle partitions",
    "These settings control how shuffles are written. [How the number of partitions is decided](adaptive-writes.md) " +
      "explains adaptive writes, and [History](history.md) what earlier runs add."
  )

  val FileScans: Category = new Category(
    "File scans",
    "These settings control how many tasks scan files. `dataVolumePerTask` and `minTaskVolume` apply to scans too. " +
      "[Scans](scans.md) explains how Apportion counts tasks."
  )

  val Hints: Category = new Category(
    "Hints",
    "[Hints](hints.md) override settings for one query block."
  )

  val TaskSlots: Category = new Category(
    "Task slots and executors",
    "A task slot runs one task at a time. With these settings, queries wait for task slots and request executors. " +
      "Both are off by default. [Resources](resources.md) explains how they work together."
  )

  val Reporting: Category = new Category(
    "Reporting",
    "These settings control where you can see decisions. [Decisions](decisions.md) describes their columns."
  )

  /** All categories in reading order. */
  val all: Seq[Category] = Seq(General, TasksPerStage, ShufflePartitions, FileScans, Hints, TaskSlots, Reporting)
}
