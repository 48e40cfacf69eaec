package io.apportion.outcomes

import io.apportion.settings.{Allowed, Category, SettingEntry, SettingRegistry}

/** The setting of what earlier runs decide. */
object OutcomeSettings extends SettingRegistry {
  val TargetTaskTime: SettingEntry[Long] = setting(
    "targetTaskTime",
    Category.TasksPerStage,
    "Run time that a task should have. An earlier run shows how many bytes a task of the stage reads per second. The " +
      "target size per task is what it reads in this time. 0 (default) decides by bytes alone. Has no effect if " +
      "`volume.measure` is `estimated`. Set it for stages that spend their time in slow code, such as Python functions."
  ).duration(default = 0, Allowed.AtLeast(0, " seconds"))
}
