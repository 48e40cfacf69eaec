package org.apache.spark.sql.apportion

import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.util.Utils

/** Removes secrets from the text of queries, as Spark does in its own events. */
object Redaction {

  /** Removes them by the pattern that this thread's session has now. */
  def ofSession: String => String = {
    val pattern = SQLConf.get.stringRedactionPattern
    Utils.redact(pattern, _)
  }
}
