package io.apportion.streams

import io.apportion.util.TableFunction

/** The table function `apportion_streams()`. */
private[apportion] object StreamTable {

  val function: TableFunction.Description = TableFunction.withoutArguments(
    "apportion_streams",
    "_FUNC_() - Returns the newest batch and the last rescales of each stream that Apportion controls, oldest first.",
    StreamRecord.schema
  )(session => StreamLog.of(session.sparkContext).all.map(_.toRow))
}
