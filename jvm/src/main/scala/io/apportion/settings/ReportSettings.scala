package io.apportion.settings

/** Settings of what is recorded. */
object ReportSettings extends SettingRegistry {
  val EventsEnabled: SettingEntry[Boolean] = boolean(
    "events.enabled",
    Category.Reporting,
    default = true,
    "Whether Apportion posts queries and decisions to Spark's listener bus, for the event log, Spark's UI and other " +
      "listeners. If false, the event log does not grow, but only `apportion_decisions()` and EXPLAIN show " +
      "decisions. Set it to false if event logs become too large."
  )
}
