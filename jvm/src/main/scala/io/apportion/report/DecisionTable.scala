package io.apportion.report

import io.apportion.tables.TableFunction

/** Table function `apportion_decisions()`. */
private[apportion] object DecisionTable {

  val function: TableFunction.Description = TableFunction.withoutArguments(
    "apportion_decisions",
    "_FUNC_() - Returns the latest decisions of this session about the parallelism of stages, oldest first.",
    DecisionRecord.schema
  )(DecisionLog.of(_).all.map(_.toRow))
}
