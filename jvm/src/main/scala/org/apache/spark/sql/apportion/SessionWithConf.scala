package org.apache.spark.sql.apportion

import org.apache.spark.sql.SparkSession

/** A session like another one but for some settings; Spark keeps cloning sessions to itself. */
object SessionWithConf {
  def of(session: SparkSession, settings: (String, String)*): SparkSession = {
    val clone = session.asInstanceOf[Classic.SparkSession].cloneSession()
    // Who reads its conf needs neither its copies of artifacts, which Spark would keep, nor its listeners.
    Classic.releaseArtifacts(clone)
    clone.listenerManager.clear()
    settings.foreach { case (key, value) => clone.conf.set(key, value) }
    clone
  }
}
