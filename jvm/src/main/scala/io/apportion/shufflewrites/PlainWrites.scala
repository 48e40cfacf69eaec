package io.apportion.shufflewrites

import io.apportion.settings.Settings
import org.apache.spark.apportion.PlainShuffles
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.internal.SQLConf

/** Reasons why Spark writes the shuffles of a query. */
private[apportion] object PlainWrites {

  /** `None` if map tasks may decide how finely they write. */
  def why(session: SparkSession, conf: SQLConf): Option[String] =
    Option
      .when(!Settings.AdaptiveWrites.get(conf))(s"${Settings.AdaptiveWrites.key} is false")
      .orElse(Option.when(!conf.coalesceShufflePartitionsEnabled)(CoalescingIsOff))
      .orElse(Option.when(Settings.RulesDisabled.get(conf)(Reads))(s"the rule $Reads is off"))
      .orElse(Option.when(conf.getConfString(Rollback, "false").toBoolean)(s"$Rollback is true"))
      .orElse(PlainShuffles.why(session.sparkContext))

  /** People switch coalescing off to keep the partitions of their shuffles. */
  private val CoalescingIsOff = s"${SQLConf.COALESCE_PARTITIONS_ENABLED.key} is false"

  /** Without this rule, Spark cuts ranges that do not fit the groups. */
  private val Reads = "DecideShuffleReads"

  /** Since Spark 4.2. It needs a checksum of each block. */
  private val Rollback = "spark.sql.shuffle.orderIndependentChecksum.enableQueryLevelRollbackOnMismatch"
}
