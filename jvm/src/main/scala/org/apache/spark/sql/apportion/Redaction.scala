package org.apache.spark.sql.apportion

import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.util.Utils

/** Redacts query text as in Spark's own events: removes secrets by a pattern. */
object Redaction {

  /** Redacts by the pattern that this thread's session has now. */
  def ofSession: String => String = {
    val pattern = SQLConf.get.stringRedactionPattern
    Utils.redact(pattern, _)
  }
}
