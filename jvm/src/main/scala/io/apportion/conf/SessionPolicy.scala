package io.apportion.conf

import io.apportion.decision.Policy
import org.apache.spark.SparkContext
import org.apache.spark.apportion.ClusterSlots
import org.apache.spark.sql.internal.SQLConf

/** The policy that a session's settings make, and who set each of them. */
final class SessionPolicy(conf: SQLConf, sparkContext: SparkContext) {

  /** @param slots slots that the stage may fill if the mode is reactive, or None for all of the cluster's */
  def policy(slots: Option[Int] = None): Policy = {
    val (volume, volumeSetBy) = dataVolumePerTask
    Policy(
      dataVolumePerTask = volume,
      broadcastRatio = Settings.BroadcastRatio.get(conf),
      minParallelism = Settings.MinParallelism.get(conf),
      maxParallelism = Settings.MaxParallelism.get(conf),
      parallelism = Some(Settings.Parallelism.get(conf)).filter(_ != -1),
      slots = if (reactive) slots.orElse(clusterSlots) else None,
      minTaskVolume = Settings.MinTaskVolume.get(conf),
      balanced = Settings.Ranges.get(conf) == "balanced",
      exactSizesUpTo = sparkContext.getConf.getInt("spark.shuffle.minNumPartitionsToHighlyCompress", 2000),
      setBy = Settings.all.map(setting => setting.name -> setBy(setting.key)).toMap +
        (Settings.DataVolumePerTask.name -> volumeSetBy)
    )
  }

  /** The slots of all executors that are registered now, if there are any yet. */
  lazy val clusterSlots: Option[Int] = Some(ClusterSlots.total(sparkContext)).filter(_ > 0)

  private def reactive: Boolean = Settings.Mode.get(conf) match {
    case "auto" =>
      !(sparkContext.getConf.getBoolean(
        "spark.dynamicAllocation.enabled",
        defaultValue = false
      ) && !sparkContext.isLocal)
    case mode => mode == "reactive"
  }

  private def dataVolumePerTask: (Long, String) = Settings.DataVolumePerTask.get(conf) match {
    case Some(bytes) => (bytes, setBy(Settings.DataVolumePerTask.key))
    case None        =>
      val advisory = SQLConf.ADVISORY_PARTITION_SIZE_IN_BYTES
      (conf.getConf(advisory).max(1), s"Spark's advisory size, ${setBy(advisory.key)}")
  }

  private def setBy(key: String): String =
    if (!conf.contains(key)) "default"
    else if (sparkContext.getConf.getOption(key).contains(conf.getConfString(key))) "submit-time conf"
    else "session setting"
}
