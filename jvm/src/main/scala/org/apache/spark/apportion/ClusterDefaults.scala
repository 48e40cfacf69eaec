package org.apache.spark.apportion

import scala.util.Try

import org.apache.spark.util.Utils

/** It is in Spark's namespace because the reader of spark-defaults.conf is private to Spark. */
object ClusterDefaults {

  /** Values in spark-defaults.conf, if it exists. The administrator of Spark set them for all users. */
  lazy val conf: Map[String, String] = Option(Utils.getDefaultPropertiesFile())
    .flatMap(file => Try(Utils.getPropertiesFromFile(file)).toOption)
    .fold(Map.empty[String, String])(_.toMap)
}
