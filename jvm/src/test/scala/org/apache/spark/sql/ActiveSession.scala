package org.apache.spark.sql

/** The session that code runs in; in Spark's namespace because Spark 3.5 keeps that to itself. */
object ActiveSession {
  def in[T](session: SparkSession)(body: => T): T = session.withActive(body)
}
