package io.apportion.settings

/** Settings of file scans. */
object ScanSettings extends SettingRegistry {
  val SourcesEnabled: SettingEntry[Boolean] = boolean(
    "sources.enabled",
    Category.FileScans,
    default = true,
    "Whether Apportion decides how many tasks scan files. If false, Spark decides from " +
      "`spark.sql.files.maxPartitionBytes`. Set it to false to keep Spark's own scans."
  )

  val SourcesParallelism: SettingEntry[Int] = int(
    "sources.parallelism",
    Category.FileScans,
    default = -1,
    Allowed.AtLeast(1, or = Some(-1L -> "decide")),
    "Number of tasks for every file scan, as far as the files can be split. -1 (default) decides from the size of " +
      "the files, and never makes fewer tasks than Spark, unless you set `dataVolumePerTask` or " +
      "`sources.maxParallelism`. To set the number for one scan, use the hint `SOURCE_PARALLELISM` or the reader " +
      "option `apportion.tasks`."
  )

  val SourcesMaxParallelism: SettingEntry[Int] = int(
    "sources.maxParallelism",
    Category.FileScans,
    default = 1000,
    Allowed.AtLeast(1),
    "Maximum number of tasks that Apportion decides for a file scan. If you do not set it and Spark would make " +
      "more tasks, Spark's number is the maximum. Lower it to limit how much of a cluster one scan can use."
  )
}
