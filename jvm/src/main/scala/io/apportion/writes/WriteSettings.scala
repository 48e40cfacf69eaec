package io.apportion.writes

import io.apportion.settings.{Allowed, Category, RuleSwitch, SettingEntry, SettingRegistry}

/** The setting of file sizes. */
object WriteSettings extends SettingRegistry {
  val WriteTargetFileSize: SettingEntry[Option[Long]] = setting(
    "write.targetFileSize",
    Category.TasksPerStage,
    "Target size of the files that a statement writes. If not set, file sizes do not matter, unless the table has a " +
      "property of this name. Set it for tables that many queries read."
  ).optionalSize(Allowed.AtLeast(1 << 16, " bytes"))

  override private[apportion] def rules: Seq[RuleSwitch] = Seq(
    RuleSwitch("SizeFiles", "`write.targetFileSize` does not change the number of tasks that write files."),
    RuleSwitch("RebalanceWrites", "Apportion adds no rebalance before tables with partitions.")
  )
}
