package io.apportion.resources

import io.apportion.util.TableFunction

/** The table function `apportion_resources()`. */
private[apportion] object ResourceTable {

  val function: TableFunction.Description = TableFunction.withoutArguments(
    "apportion_resources",
    "_FUNC_() - Returns the last changes of the application's task slots and of its queries, oldest first.",
    ResourceHistory.schema
  )(session => SlotCoordinator.changesOf(session.sparkContext).map(_.toRow))
}
