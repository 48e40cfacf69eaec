package io.apportion.resources

import io.apportion.rules.TableFunction

/** The table function `apportion_resources()`. */
private[apportion] object ResourceTable {

  val function: TableFunction.Description = TableFunction.withoutArguments(
    "apportion_resources",
    "_FUNC_() - The last changes of this application's slots and of what its queries need of them, oldest first.",
    ResourceHistory.schema
  )(session => SlotCoordinator.changesOf(session.sparkContext).map(_.toRow))
}
