package io.apportion.joins

import io.apportion.settings.{RuleSwitch, SettingRegistry}

/** The rules about joins that can be switched off. They have no settings. */
object JoinRules extends SettingRegistry {
  override private[apportion] def rules: Seq[RuleSwitch] = Seq(
    RuleSwitch("DemoteBroadcasts", "Spark broadcasts tables that do not fit the heap of the driver or the executors."),
    RuleSwitch("PreferHashJoins", "Spark sorts both sides of joins whose smaller side fits a task's memory."),
    RuleSwitch("RememberBroadcasts", "Apportion adds no sizes of broadcasts to the history but still reads it.")
  )
}
