package io.apportion.report

import io.apportion.rules.TableFunction

/** The table function `apportion_decisions()`. */
private[apportion] object DecisionTable {

  val function: TableFunction.Description = TableFunction.withoutArguments(
    "apportion_decisions",
    "_FUNC_() - The last decisions of this session on the parallelism of stages, oldest first.",
    DecisionRecord.schema
  )(DecisionLog.of(_).all.map(_.toRow))
}
