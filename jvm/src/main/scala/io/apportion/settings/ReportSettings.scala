package io.apportion.settings

/** Settings of what is recorded. */
object ReportSettings extends SettingRegistry {
  val RetainedDecisions: SettingEntry[Int] = int(
    "retainedDecisions",
    Category.Reporting,
    default = 1000,
    Allowed.AtLeast(1),
    "Number of decisions that `apportion_decisions()` keeps for a session. Apportion drops older ones. Raise it if " +
      "you look at the decisions of many queries at once."
  )

  val EventsEnabled: SettingEntry[Boolean] = boolean(
    "events.enabled",
    Category.Reporting,
    default = true,
    "Whether Apportion posts queries and decisions to Spark's listener bus, for the event log, Spark's UI and other " +
      "listeners. If false, the event log does not grow, but only `apportion_decisions()` and EXPLAIN show " +
      "decisions. Set it to false if event logs become too large."
  )
}
