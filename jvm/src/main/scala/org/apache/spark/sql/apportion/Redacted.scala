package org.apache.spark.sql.apportion

import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.util.Utils

/** Redacts query text as in Spark's own events: removes secrets by the pattern in the session's configuration. */
object Redacted {
  def apply(text: String): String = Utils.redact(SQLConf.get.stringRedactionPattern, text)
}
