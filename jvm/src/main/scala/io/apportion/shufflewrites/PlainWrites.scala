package io.apportion.shufflewrites

import java.io.File

import scala.util.Try

import io.apportion.settings.Settings
import org.apache.spark.SparkContext
import org.apache.spark.apportion.{Cluster, ShuffleReads}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.internal.SQLConf

/** Reasons why Spark writes the shuffles of a query. */
private[apportion] object PlainWrites {

  /** `None` if map tasks may decide how finely they write. */
  def why(session: SparkSession, conf: SQLConf): Option[String] = {
    val context = session.sparkContext
    def value(key: String) =
      if (key.startsWith("spark.sql.")) conf.getConfString(key, "false")
      else Cluster.submitted(context, key).getOrElse("false")
    Option
      .when(!Settings.AdaptiveWrites.get(conf))(s"${Settings.AdaptiveWrites.key} is false")
      .orElse(Option.when(!conf.coalesceShufflePartitionsEnabled)(CoalescingIsOff))
      .orElse(Option.when(Settings.RulesDisabled.get(conf)(Reads))(s"the rule $Reads is off"))
      .orElse(ShuffleReads.otherManager.map(manager => s"the shuffle manager is ${manager.split('.').last}"))
      .orElse(SwitchedOn.find(value(_).toBoolean).map(key => s"$key is true"))
      .orElse(Option.when(Cluster.hasOtherEngine(context))("spark.plugins names another engine"))
      .orElse(Option.when(System.getenv(Databricks) != null)("the runtime is Databricks"))
      .orElse(Option.when(!executorsHaveClasses(context))(s"no setting passes $jarName to executors"))
  }

  /** People switch coalescing off to keep the partitions of their shuffles. */
  private val CoalescingIsOff = s"${SQLConf.COALESCE_PARTITIONS_ENABLED.key} is false"

  /** Without this rule, Spark cuts ranges that do not fit the groups. */
  private val Reads = "DecideShuffleReads"

  /** What needs Spark's own blocks. Since Spark 4.2, a rollback needs a checksum of each block. */
  private val SwitchedOn = Seq(
    "spark.sql.shuffle.orderIndependentChecksum.enableQueryLevelRollbackOnMismatch",
    "spark.shuffle.push.enabled",
    "spark.shuffle.useOldFetchProtocol"
  )

  /** A variable that all clusters of Databricks have. Their runtime refuses exchanges that it does not know. */
  private val Databricks = "DATABRICKS_RUNTIME_VERSION"

  /** Whether tasks can load Apportion's classes: from its jar, which users pass to Spark or put among Spark's jars. */
  private def executorsHaveClasses(context: SparkContext): Boolean = {
    def passed = context.listJars() ++ JarKeys.flatMap(Cluster.submitted(context, _))
    context.isLocal || isAmongSparksJars || passed.exists(_.contains(jarName))
  }

  private val JarKeys = Seq("spark.jars", "spark.yarn.dist.jars", "spark.executor.extraClassPath")

  private lazy val own: Option[File] = jarOf(getClass)

  private lazy val jarName: String = own.fold("Apportion's jar")(_.getName)

  private lazy val isAmongSparksJars: Boolean = {
    val sparks = jarOf(classOf[SparkContext]).map(_.getParentFile)
    own.flatMap(jar => Option(jar.getParentFile)).exists(sparks.contains(_))
  }

  private def jarOf(loaded: Class[_]): Option[File] =
    Try(new File(loaded.getProtectionDomain.getCodeSource.getLocation.toURI)).toOption
}
