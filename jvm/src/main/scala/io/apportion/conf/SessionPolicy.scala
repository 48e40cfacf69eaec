package io.apportion.conf

import io.apportion.decision.{Policy, Rounding}
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
      steadySlots = if (isDynamic) None else slots.orElse(clusterSlots),
      minTaskVolume = Settings.MinTaskVolume.get(conf),
      sourceParallelism = sourceDefault.getOrElse(1),
      balanced = Settings.Ranges.get(conf) == "balanced",
      rounding = Rounding.all.find(_.name == Settings.Rounding.get(conf)).get,
      rowBytes = Settings.VolumeMeasure.get(conf) == "estimated",
      maxBlocksPerTask = Settings.MaxBlocksPerTask.get(conf),
      maxBlocksPerShuffle = Settings.MaxBlocksPerShuffle.get(conf),
      exactSizesUpTo = sparkContext.getConf.getInt("spark.shuffle.minNumPartitionsToHighlyCompress", 2000),
      setBy = Settings.all.map(setting => setting.name -> setBy(setting.key)).toMap +
        (Settings.DataVolumePerTask.name -> volumeSetBy)
    )
  }

  /**
   * The policy for scans of files.
   *
   * @param cutting the conf of the session that Spark cuts them by
   */
  def source(cutting: SQLConf): Policy = {
    val (volume, volumeSetBy) = Settings.DataVolumePerTask.get(conf) match {
      case Some(bytes) => (bytes, setBy(Settings.DataVolumePerTask.key))
      case None        =>
        (cutting.filesMaxPartitionBytes.max(1), s"Spark's maximum, ${setBy(SQLConf.FILES_MAX_PARTITION_BYTES.key)}")
    }
    def who(setting: Setting[_]) = s"${setting.name}, ${setBy(setting.key)}"
    val most = Settings.SourcesMaxParallelism.get(conf)
    val decided = policy().copy(
      dataVolumePerTask = volume,
      minParallelism = cutting.filesMinPartitionNum.getOrElse(1).min(most),
      maxParallelism = most,
      parallelism = None,
      minTaskVolume = Settings.MinTaskVolume.get(conf).max(cutting.filesOpenCostInBytes),
      rowBytes = false,
      // Files are cut anywhere.
      balanced = true,
      rounding = Rounding.Exact,
      setBy = Map(
        "dataVolumePerTask" -> volumeSetBy,
        "minParallelism" -> SQLConf.FILES_MIN_PARTITION_NUM.key,
        "maxParallelism" -> who(Settings.SourcesMaxParallelism)
      )
    )
    val set = Settings.SourcesParallelism.get(conf)
    if (set == -1) decided else decided.withParallelism(set, who(Settings.SourcesParallelism))
  }

  /** The tasks of a source whose size nobody knows, if that is set. */
  def sourceDefault: Option[Int] = Some(Settings.SourcesDefaultParallelism.get(conf)).filter(_ != -1)

  /** The slots of all executors that are registered now, if there are any yet. */
  lazy val clusterSlots: Option[Int] = Some(ClusterSlots.total(sparkContext)).filter(_ > 0)

  private def reactive: Boolean = Settings.Mode.get(conf) match {
    case "auto" => !isDynamic
    case mode   => mode == "reactive"
  }

  private def isDynamic: Boolean =
    sparkContext.getConf.getBoolean("spark.dynamicAllocation.enabled", defaultValue = false) && !sparkContext.isLocal

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
