package org.apache.spark.apportion

import java.io.File

import scala.util.Try

import org.apache.spark.SparkContext
import org.apache.spark.internal.config._

/**
 * Reasons why shuffles of an application stay Spark's own. It is in Spark's namespace because the configuration object
 * is private to Spark.
 */
object PlainShuffles {

  /** `None` if Apportion may write shuffles itself. */
  def why(sparkContext: SparkContext): Option[String] = {
    val conf = sparkContext.conf
    ShuffleReads.otherManager
      .map(manager => s"the shuffle manager is ${manager.split('.').last}")
      .orElse(Option.when(conf.get(PUSH_BASED_SHUFFLE_ENABLED))(s"${PUSH_BASED_SHUFFLE_ENABLED.key} is true"))
      .orElse(Option.when(conf.get(SHUFFLE_USE_OLD_FETCH_PROTOCOL))(s"${SHUFFLE_USE_OLD_FETCH_PROTOCOL.key} is true"))
      .orElse(Option.when(Cluster.hasOtherEngine(sparkContext))(s"${PLUGINS.key} names another engine"))
      .orElse(Option.when(System.getenv(Databricks) != null)("the runtime is Databricks"))
      .orElse(Option.when(!executorsHaveClasses(sparkContext))(s"no setting passes $jarName to executors"))
  }

  /** A variable that all clusters of Databricks have. Their runtime refuses exchanges that it does not know. */
  private val Databricks = "DATABRICKS_RUNTIME_VERSION"

  /** Whether tasks can load Apportion's classes: from its jar, which users pass to Spark or put among Spark's jars. */
  private def executorsHaveClasses(sparkContext: SparkContext): Boolean = {
    val conf = sparkContext.conf
    def passed = sparkContext.listJars() ++ JarKeys.flatMap(conf.getOption)
    sparkContext.isLocal || isAmongSparksJars || passed.exists(_.contains(jarName))
  }

  private val JarKeys = Seq("spark.jars", "spark.yarn.dist.jars", EXECUTOR_CLASS_PATH.key)

  private lazy val own: Option[File] =
    Try(new File(getClass.getProtectionDomain.getCodeSource.getLocation.toURI)).toOption

  private lazy val jarName: String = own.fold("Apportion's jar")(_.getName)

  private lazy val isAmongSparksJars: Boolean = {
    val sparks = Try(new File(classOf[SparkContext].getProtectionDomain.getCodeSource.getLocation.toURI)).toOption
    own.flatMap(jar => Option(jar.getParentFile)).exists(folder => sparks.map(_.getParentFile).contains(folder))
  }
}
