package io.apportion.settings

import io.apportion.decision.{Policy, ResourceSpec, Rounding, ShuffleDefaults}
import org.apache.spark.apportion.{Cluster, ClusterDefaults, ShuffleReads}
import org.apache.spark.SparkContext
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
      // Where slots come and go, stages fill those that are registered, but do not ask for them.
      slots = if (Settings.Mode.get(conf) == "active") None else slots.orElse(clusterSlots),
      declaresSlots = reactive,
      steadySlots = if (slotsFollow) None else slots.orElse(clusterSlots),
      minTaskVolume = Settings.MinTaskVolume.get(conf),
      sourceParallelism = sourceDefault.getOrElse(1),
      balanced = SessionPolicy.isBalanced(conf),
      rounding = SessionPolicy.rounding(conf),
      rowBytes = Settings.VolumeMeasure.get(conf) == "estimated",
      maxBlocksPerTask = Settings.MaxBlocksPerTask.get(conf),
      fetchesInBatch = conf.fetchShuffleBlocksInBatch && ShuffleReads.inBatch(sparkContext),
      maxSubpartitionsPerTask = maxReducerPartitions.getOrElse(Int.MaxValue),
      maxBlocksPerShuffle = Settings.MaxBlocksPerShuffle.get(conf),
      exactSizesUpTo = Cluster.exactSizesUpTo(sparkContext),
      setBy = Settings.all.map(setting => setting.name -> setBy(setting.key)).toMap +
        (Settings.DataVolumePerTask.name -> volumeSetBy) ++
        maxReducerPartitions.map(_ => "maxSubpartitionsPerTask" -> SessionPolicy.MaxReducerPartitions)
    )
  }

  /**
   * The policy for scans of files. Registered slots are filled in each mode but `active`: executors that are there cost nothing.
   *
   * @param cutting        the conf of the session that Spark cuts the files by
   * @param sparks         the tasks that Spark would make: the least, unless the user sets a volume or a maximum
   * @param volumeIsHinted whether a hint sets the volume of the scan's tasks
   */
  def source(cutting: SQLConf, sparks: Int, volumeIsHinted: Boolean): Policy = {
    val ofUser = Settings.DataVolumePerTask.get(conf)
    val (volume, volumeSetBy) = ofUser match {
      case Some(bytes) => (bytes, setBy(Settings.DataVolumePerTask.key))
      case None        =>
        (cutting.filesMaxPartitionBytes.max(1), s"Spark's maximum, ${setBy(SQLConf.FILES_MAX_PARTITION_BYTES.key)}")
    }
    def who(setting: SettingEntry[_]) = s"${setting.name}, ${setBy(setting.key)}"
    val (most, mostSetBy) = {
      val ofSetting = Settings.SourcesMaxParallelism.get(conf)
      if (conf.contains(Settings.SourcesMaxParallelism.key)) (ofSetting, who(Settings.SourcesMaxParallelism))
      else
        cutting.filesMaxPartitionNum.filter(_ < ofSetting) match {
          case _ if ofSetting < sparks => (sparks, SessionPolicy.AsSpark)
          case Some(n)                 => (n.max(sparks), SQLConf.FILES_MAX_PARTITION_NUM.key)
          case None                    => (ofSetting, who(Settings.SourcesMaxParallelism))
        }
    }
    val (least, leastSetBy) =
      if (ofUser.isEmpty && !volumeIsHinted) (sparks, SessionPolicy.AsSpark)
      else (cutting.filesMinPartitionNum.getOrElse(1), SQLConf.FILES_MIN_PARTITION_NUM.key)
    val decided = policy().copy(
      dataVolumePerTask = volume,
      minParallelism = least.min(most),
      maxParallelism = most,
      parallelism = None,
      slots = if (Settings.Mode.get(conf) == "active") None else clusterSlots,
      minTaskVolume = Settings.MinTaskVolume.get(conf).max(cutting.filesOpenCostInBytes),
      rowBytes = false,
      // Files are cut anywhere.
      balanced = true,
      rounding = Rounding.Exact,
      setBy = Map(
        "dataVolumePerTask" -> volumeSetBy,
        "minParallelism" -> leastSetBy,
        "maxParallelism" -> mostSetBy
      )
    )
    val set = Settings.SourcesParallelism.get(conf)
    if (set == -1) decided else decided.withParallelism(set, who(Settings.SourcesParallelism))
  }

  /** The tasks of a source whose size nobody knows, if that is set. */
  def sourceDefault: Option[Int] = Some(Settings.SourcesDefaultParallelism.get(conf)).filter(_ != -1)

  /** The slots of all executors that are registered, if there are any yet. */
  lazy val clusterSlots: Option[Int] = Some(Cluster.recentSlots(sparkContext)).filter(_ > 0)

  /** The number of partitions that Spark itself gives a shuffle. */
  def shuffleDefaults: ShuffleDefaults = ShuffleDefaults(
    partitions = conf.numShufflePartitions,
    bypassUpTo = Cluster.bypassUpTo(sparkContext),
    exactSizesUpTo = Cluster.exactSizesUpTo(sparkContext)
  )

  /** What a slot is made of. */
  def spec: ResourceSpec = Cluster.spec(sparkContext)

  /** Whether stages use the slots that are there, instead of asking for those that they need. */
  lazy val reactive: Boolean = Settings.Mode.get(conf) match {
    case "auto" | "observe" => !slotsFollow
    case mode               => mode == "reactive"
  }

  /** Whether slots come and go as queries need them. */
  private def slotsFollow: Boolean =
    Cluster.isDynamic(sparkContext) || (Settings.RequestExecutors.get(conf) && Cluster.canBeAsked(sparkContext))

  /** Only where it is set: Spark 4.3 knows the key, and refuses a default that is no number. */
  private def maxReducerPartitions: Option[Int] = {
    val key = SessionPolicy.MaxReducerPartitions
    Option.when(conf.contains(key))(conf.getConfString(key)).flatMap(_.toIntOption).filter(_ >= 1)
  }

  private def dataVolumePerTask: (Long, String) = Settings.DataVolumePerTask.get(conf) match {
    case Some(bytes) => (bytes, setBy(Settings.DataVolumePerTask.key))
    case None        =>
      val advisory = SQLConf.ADVISORY_PARTITION_SIZE_IN_BYTES
      (conf.getConf(advisory).max(1), s"Spark's advisory size, ${setBy(advisory.key)}")
  }

  private def setBy(key: String): String =
    if (!conf.contains(key)) "default"
    else {
      val value = conf.getConfString(key)
      if (!Cluster.submitted(sparkContext, key).contains(value)) "session setting"
      else if (ClusterDefaults.conf.get(key).contains(value)) "spark-defaults.conf"
      else "submit-time conf"
    }
}

object SessionPolicy {

  /** Whether the settings make the number of tasks a power of two. */
  def isPowerOfTwo(conf: SQLConf): Boolean = Policy.isPowerOfTwo(isBalanced(conf), rounding(conf))

  private def isBalanced(conf: SQLConf): Boolean = Settings.Ranges.get(conf) == "balanced"

  private def rounding(conf: SQLConf): Rounding = Rounding.all.find(_.name == Settings.Rounding.get(conf)).get

  /** Who set a bound of a scan's tasks, where no one did. */
  val AsSpark = "as many as Spark makes"

  /** Spark's bound for the partitions that it coalesces for a task, from 4.3 on (SPARK-58004). */
  private val MaxReducerPartitions = "spark.sql.adaptive.coalescePartitions.maxReducerPartitionsPerTask"
}
