package org.apache.spark.sql.apportion

import scala.collection.mutable

import org.apache.spark.sql.internal.SQLConf

/** The keys that are set in a conf. */
object ConfKeys {

  /** Those that begin with a prefix. `SQLConf.getAllConfs` copies all entries, which would be done for each analysis. */
  def startingWith(conf: SQLConf, prefix: String): Seq[String] = {
    val found = mutable.ArrayBuffer.empty[String]
    conf.settings.synchronized(conf.settings.keySet.forEach(key => if (key.startsWith(prefix)) found += key))
    found.toSeq
  }
}
