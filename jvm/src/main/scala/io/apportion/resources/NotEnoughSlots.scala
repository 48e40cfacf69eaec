package io.apportion.resources

import io.apportion.rules.OptInError
import io.apportion.settings.Settings
import org.apache.spark.sql.execution.QueryExecutionException

/** The error of a query that had fewer slots than `spark.apportion.resources.minSlots` for as long as it waits for them. */
final class NotEnoughSlots(need: Int, have: Int, timeoutMillis: Long)
    extends QueryExecutionException(NotEnoughSlots.text(need, have, timeoutMillis))
    with OptInError

object NotEnoughSlots {

  def text(need: Int, have: Int, timeoutMillis: Long): String =
    s"The query needs $need slots (${Settings.MinSlots.key}) and the registered executors have $have, after it has waited " +
      s"${timeoutMillis / 1000.0} seconds for them (${Settings.ResourceTimeout.key}). Start more executors, have them asked for " +
      s"(${Settings.RequestExecutors.key}=true), or lower ${Settings.MinSlots.key}."
}
