package io.apportion.settings

/** Settings of file scans. */
object ScanSettings extends SettingRegistry {
  val SourcesEnabled: SettingEntry[Boolean] = setting(
    "sources.enabled",
    Category.FileScans,
    "Whether Apportion decides how many tasks scan files. If false, Spark decides from " +
      "`spark.sql.files.maxPartitionBytes`. Set it to false to keep Spark's own scans."
  ).boolean(default = true)

  val SourcesParallelism: SettingEntry[Int] = setting(
    "sources.parallelism",
    Category.FileScans,
    "Number of tasks for every file scan, as far as the files can be split. -1 (default) decides from the size of " +
      "the files, and never makes fewer tasks than Spark, unless you set `dataVolumePerTask` or " +
      "`sources.maxParallelism`. To set the number for one scan, use the hint `SOURCE_PARALLELISM` or the reader " +
      "option `apportion.tasks`."
  ).int(default = -1, Allowed.AtLeast(1, or = Some(-1L -> "decide")))

  val SourcesMaxParallelism: SettingEntry[Int] = setting(
    "sources.maxParallelism",
    Category.FileScans,
    "Maximum number of tasks that Apportion decides for a file scan. If you do not set it and Spark would make " +
      "more tasks, Spark's number is the maximum. Lower it to limit how much of a cluster one scan can use."
  ).int(default = 1000, Allowed.AtLeast(1))

  override private[apportion] def rules: Seq[RuleSwitch] = Seq(
    RuleSwitch("ScanTasks", "Spark decides how many tasks scan files.")
  )
}
