package io.apportion.resources

import io.apportion.decision.Sentence
import io.apportion.rules.OptInError
import io.apportion.settings.{ResourceSettings, Settings}
import org.apache.spark.sql.execution.QueryExecutionException

/**
 * The error of a query that waited for `spark.apportion.resources.minSlots` task slots and did not get them in time.
 */
final class NotEnoughSlots(need: Int, have: Int, timeoutMillis: Long)
    extends QueryExecutionException(NotEnoughSlots.text(need, have, timeoutMillis))
    with OptInError

object NotEnoughSlots {

  def text(need: Int, have: Int, timeoutMillis: Long): String =
    s"The query needs ${Sentence.count(need, "slot")} (${ResourceSettings.MinSlots.key}) and the registered " +
      s"executors have $have after a wait of ${timeoutMillis / 1000.0} seconds (${ResourceSettings.ResourceTimeout.key}). " +
      s"Start more executors, set ${Settings.RequestExecutors.key}=true to request them, or lower " +
      s"${ResourceSettings.MinSlots.key}."
}
