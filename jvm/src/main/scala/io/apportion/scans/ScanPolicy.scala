package io.apportion.scans

import io.apportion.decision.{Policy, Rounding, SourceKind, ValueSource}
import io.apportion.settings.{ScanSettings, SessionPolicy, SettingEntry, Settings}
import org.apache.spark.sql.internal.SQLConf

/** Policy for scans of files. In every mode except `active`, scans fill the registered slots, which cost nothing extra. */
private[scans] object ScanPolicy {

  /** Source of a bound if it is Spark's own number of tasks. */
  val AsSpark: ValueSource = ValueSource(SourceKind.Spark, "as many as Spark makes")

  /**
   * @param session        settings of the query
   * @param scanConf       conf of the session that Spark splits the files with
   * @param sparkTasks     number of tasks that Spark would run; it is the minimum, unless the user sets a target size
   *                       or a maximum
   * @param volumeIsHinted whether a hint sets the target size per task
   */
  def of(session: SessionPolicy, scanConf: SQLConf, sparkTasks: Int, volumeIsHinted: Boolean): Policy = {
    import session.{conf, dataVolumePerTask, ofSpark, setBy}
    val (volume, volumeSetBy) =
      dataVolumePerTask(scanConf.filesMaxPartitionBytes, "Spark's maximum", SQLConf.FILES_MAX_PARTITION_BYTES.key)
    def sourceOf(setting: SettingEntry[_]) = {
      val source = setBy(setting.key)
      source.copy(text = s"${setting.name}, ${source.text}")
    }
    val (maxTasks, maxSetBy) = {
      val maximum = ScanSettings.SourcesMaxParallelism.get(conf)
      if (conf.contains(ScanSettings.SourcesMaxParallelism.key)) (maximum, sourceOf(ScanSettings.SourcesMaxParallelism))
      else
        scanConf.filesMaxPartitionNum.filter(_ < maximum) match {
          case _ if maximum < sparkTasks => (sparkTasks, AsSpark)
          case Some(n)                   => (n.max(sparkTasks), ofSpark(SQLConf.FILES_MAX_PARTITION_NUM.key))
          case None                      => (maximum, sourceOf(ScanSettings.SourcesMaxParallelism))
        }
    }
    val (minTasks, minSetBy) =
      if (Settings.DataVolumePerTask.get(conf).isEmpty && !volumeIsHinted) (sparkTasks, AsSpark)
      else (scanConf.filesMinPartitionNum.getOrElse(1), ofSpark(SQLConf.FILES_MIN_PARTITION_NUM.key))
    val byBytes = session
      .policy()
      .copy(
        dataVolumePerTask = volume,
        minParallelism = minTasks.min(maxTasks),
        maxParallelism = maxTasks,
        parallelism = None,
        minTaskVolume = Settings.MinTaskVolume.get(conf).max(scanConf.filesOpenCostInBytes),
        rowBytes = false,
        taskMemory = None,
        // Spark can split files anywhere, so the number of tasks is not rounded.
        balanced = true,
        rounding = Rounding.Exact,
        setBy = Map(
          "dataVolumePerTask" -> volumeSetBy,
          "minParallelism" -> minSetBy,
          "maxParallelism" -> maxSetBy
        )
      )
    val tasks = ScanSettings.SourcesParallelism.get(conf)
    if (tasks == -1) byBytes else byBytes.withParallelism(tasks, sourceOf(ScanSettings.SourcesParallelism))
  }
}
