package org.apache.spark.sql.apportion

import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.util.Utils

/** Text of queries as Spark's own events have it: without what the session's conf says is secret. */
object Redacted {
  def apply(text: String): String = Utils.redact(SQLConf.get.stringRedactionPattern, text)
}
