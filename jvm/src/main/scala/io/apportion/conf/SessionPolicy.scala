package io.apportion.conf

import io.apportion.decision.Policy
import org.apache.spark.SparkContext
import org.apache.spark.apportion.ClusterSlots
import org.apache.spark.sql.internal.SQLConf

/** The policy that a session's settings make, and who set each of them. */
final class SessionPolicy(conf: SQLConf, sparkContext: SparkContext) {
  import SessionPolicy._

  /**
   * @param slots  slots that the stage may fill if the mode is reactive, or None for all of the cluster's
   * @param volume a volume from elsewhere that goes before the session's, and who says so
   */
  def policy(slots: Option[Int] = None, volume: Option[Volume] = None): Policy = {
    val chosen = volume.getOrElse(sessionVolume)
    Policy(
      dataVolumePerTask = chosen.bytes,
      broadcastRatio = Settings.BroadcastRatio.get(conf),
      minParallelism = Settings.MinParallelism.get(conf),
      maxParallelism = Settings.MaxParallelism.get(conf),
      parallelism = explicitParallelism,
      slots = if (reactive) slots.orElse(clusterSlots) else None,
      minTaskVolume = minTaskVolume,
      setBy = Settings.all.map(setting => setting.name -> setBy(setting.key)).toMap +
        (Settings.DataVolumePerTask.name -> chosen.setBy)
    )
  }

  /** Input bytes say little of the work there, so a task gets few of them. */
  def volumeUnderMultiplyingJoin: Volume =
    if (sessionVolume.bytes <= minTaskVolume) sessionVolume
    else Volume(minTaskVolume, "minTaskVolume, under a join that multiplies rows")

  private def minTaskVolume: Long = Settings.MinTaskVolume.get(conf)

  def explicitParallelism: Option[Int] = Some(Settings.Parallelism.get(conf)).filter(_ != -1)

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

  private def sessionVolume: Volume = Settings.DataVolumePerTask.get(conf) match {
    case Some(bytes) => Volume(bytes, setBy(Settings.DataVolumePerTask.key))
    case None        =>
      val advisory = SQLConf.ADVISORY_PARTITION_SIZE_IN_BYTES
      Volume(conf.getConf(advisory).max(1), s"Spark's advisory size, ${setBy(advisory.key)}")
  }

  private def setBy(key: String): String =
    if (!conf.contains(key)) "default"
    else if (sparkContext.getConf.getOption(key).contains(conf.getConfString(key))) "submit-time conf"
    else "session setting"
}

object SessionPolicy {

  /** A volume per task, in bytes, and who set it. */
  final case class Volume(bytes: Long, setBy: String)
}
