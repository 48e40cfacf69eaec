package org.apache.spark.sql.apportion

import scala.collection.mutable

import org.apache.spark.sql.internal.SQLConf

/** The keys that are set in a configuration. */
object ConfKeys {

  /** Keys with this prefix. `SQLConf.getAllConfs` would copy all entries in each analysis. */
  def startingWith(conf: SQLConf, prefix: String): Seq[String] = {
    val keys = mutable.ArrayBuffer.empty[String]
    conf.settings.synchronized(conf.settings.keySet.forEach(key => if (key.startsWith(prefix)) keys += key))
    keys.toSeq
  }
}
