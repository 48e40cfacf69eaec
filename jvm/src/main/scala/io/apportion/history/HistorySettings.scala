package io.apportion.history

import io.apportion.settings.{Allowed, Category, SettingEntry, SettingRegistry}

/** The setting of the history. */
object HistorySettings extends SettingRegistry {
  val HistoryPath: SettingEntry[Option[String]] = setting(
    "history.path",
    Category.General,
    "Directory where Apportion stores what it learns from the runs of a query, for later applications. Literals of " +
      "the query are not stored. If not set, Apportion stores nothing. Set it when Spark starts; sessions cannot " +
      "change it. Use it for queries that run regularly."
  ).staticLocation(Allowed.Location("a directory, such as /folder or hdfs://host/folder"))
}
