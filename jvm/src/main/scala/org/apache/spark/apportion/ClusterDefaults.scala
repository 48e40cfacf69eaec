package org.apache.spark.apportion

import scala.util.Try

import org.apache.spark.util.Utils

/** In Spark's namespace because what reads its defaults is private to it. */
object ClusterDefaults {

  /** What spark-defaults.conf says, where there is one: what whoever set Spark up chose for everybody. */
  lazy val conf: Map[String, String] = Option(Utils.getDefaultPropertiesFile())
    .flatMap(file => Try(Utils.getPropertiesFromFile(file)).toOption)
    .fold(Map.empty[String, String])(_.toMap)
}
