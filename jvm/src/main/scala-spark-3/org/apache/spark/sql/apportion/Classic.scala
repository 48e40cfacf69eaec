package org.apache.spark.sql.apportion

import org.apache.spark.sql

/** The session and the data frames that run in this JVM: before Spark 4 there are no others. */
private[sql] object Classic {
  type SparkSession = sql.SparkSession
  val Dataset: sql.Dataset.type = sql.Dataset

  /** A session has none before Spark 4. */
  def releaseArtifacts(session: SparkSession): Unit = ()
}
