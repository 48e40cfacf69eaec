package org.apache.spark.sql.apportion

import org.apache.spark.sql.classic

/** The session and the data frames that run in this JVM: since Spark 4 SparkSession may as well be a client of Spark Connect. */
private[sql] object Classic {
  type SparkSession = classic.SparkSession
  val Dataset: classic.Dataset.type = classic.Dataset

  def releaseArtifacts(session: SparkSession): Unit = session.sessionState.artifactManager.close()
}
