package org.apache.spark.sql.apportion

import java.util.{AbstractMap, Map => JavaMap, Set => JavaSet}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.internal.SQLConf

/**
 * A conf with other values for some keys. Other keys follow the current values of the parent. It is in Spark's
 * namespace because the map of settings is private to Spark.
 *
 * A parameter field is set before the parent's constructor runs. That constructor creates a reader of `settings`.
 */
private[apportion] class ConfOverlay(@transient override protected[spark] val settings: JavaMap[String, String])
    extends SQLConf {

  /** File readers of the DataSource V2 API send the conf to executors, which may not have this class. */
  protected def writeReplace(): AnyRef = clone()
}

private[apportion] object ConfOverlay {
  def apply(parent: SQLConf, values: Map[String, String]): ConfOverlay = new ConfOverlay(settings(parent, values))

  def settings(parent: SQLConf, values: Map[String, String]): JavaMap[String, String] = new Overridden(parent, values)

  private final class Overridden(parent: SQLConf, values: Map[String, String]) extends AbstractMap[String, String] {
    override def get(key: Any): String = values.getOrElse(key.toString, parent.settings.get(key))
    override def containsKey(key: Any): Boolean = values.contains(key.toString) || parent.settings.containsKey(key)
    override def entrySet: JavaSet[JavaMap.Entry[String, String]] = (parent.getAllConfs ++ values).asJava.entrySet
  }
}
