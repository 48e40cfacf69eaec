package io.apportion.settings

import io.apportion.decision.{Policy, Rounding, SourceKind, ValueSource}
import io.apportion.decision.ranges.Bytes
import org.apache.spark.apportion.{Cluster, ShuffleReads}
import org.apache.spark.SparkContext
import org.apache.spark.sql.apportion.QueryConf
import org.apache.spark.sql.internal.SQLConf

/** Builds policies from the settings of a session, with the source of each value. */
final class SessionPolicy(val conf: SQLConf, sparkContext: SparkContext) {

  /**
   * Policy for stages that read shuffles.
   *
   * @param slots      task slots that a stage may use; `None` for all registered slots
   * @param broadcasts bytes of the broadcast tables that each executor keeps in memory for the stage
   * @param bytes      bytes of the shuffles; 0 while they are unknown. They count only if the advisory size is small
   */
  def policy(slots: Option[Int] = None, broadcasts: Long = 0, bytes: => Long = 0): Policy = {
    val available = slots.orElse(clusterSlots)
    val policy = ofAllStages.copy(
      // If the number of slots follows demand, stages fill the registered slots but do not request them.
      slots = if (Settings.Mode.get(conf) == "active") None else available,
      steadySlots = if (slotsFollow) None else available,
      taskMemory = taskMemory(broadcasts)
    )
    if (Settings.DataVolumePerTask.get(conf).isDefined) policy else withoutTinyTasks(policy, bytes)
  }

  /**
   * Policy that uses an advisory size below `minPartitionSize` only where it makes few tasks. Spark's tasks read at least
   * this minimum (`ShufflePartitionsUtil.coalescePartitions`), so a missing unit, as in `64` for 64 MB, does no harm there.
   */
  private def withoutTinyTasks(policy: Policy, bytes: => Long): Policy = {
    val few = policy.steadySlots.fold(policy.sparksPartitions.toLong)(_ * SessionPolicy.WavesOfTinyTasks)
    val minimum = conf.getConf(SQLConf.COALESCE_PARTITIONS_MIN_PARTITION_SIZE)
    lazy val volume = minimum.min(bytes / few)
    if (minimum <= policy.dataVolumePerTask || volume <= policy.dataVolumePerTask) policy
    else {
      val advisory = Bytes.text(policy.dataVolumePerTask)
      policy.withVolume(
        volume,
        ofSpark(s"Spark's advisory size is $advisory, below its minPartitionSize of ${Bytes.text(minimum)}")
      )
    }
  }

  /** What is the same for all stages. It is read once, as there are many settings and a plan may have many stages. */
  private lazy val ofAllStages: Policy = {
    val advisory = SQLConf.ADVISORY_PARTITION_SIZE_IN_BYTES
    val (volume, volumeSetBy) = dataVolumePerTask(conf.getConf(advisory), "Spark's advisory size", advisory.key)
    Policy(
      dataVolumePerTask = volume,
      broadcastRatio = Settings.BroadcastRatio.get(conf),
      minParallelism = Settings.MinParallelism.get(conf),
      maxParallelism = Settings.MaxParallelism.get(conf),
      parallelism = Some(Settings.Parallelism.get(conf)).filter(_ != -1),
      declaresSlots = reactive,
      minTaskVolume = Settings.MinTaskVolume.get(conf),
      sourceParallelism = sourceDefault.getOrElse(1),
      balanced = SessionPolicy.isBalanced(conf),
      rounding = SessionPolicy.rounding(conf),
      rowBytes = Settings.VolumeMeasure.get(conf) == "estimated",
      fetchesInBatch = conf.fetchShuffleBlocksInBatch && ShuffleReads.inBatch(sparkContext),
      maxSubpartitionsPerTask = maxReducerPartitions.getOrElse(Int.MaxValue),
      sparksPartitions = conf.numShufflePartitions,
      setBy = SettingRegistry.sourcesIfUnset ++
        SettingRegistry.all.filter(set => conf.contains(set.key)).map(set => set.name -> setBy(set.key)) +
        (Settings.DataVolumePerTask.name -> volumeSetBy) ++
        maxReducerPartitions.map(_ => "maxSubpartitionsPerTask" -> ofSpark(SessionPolicy.MaxReducerPartitions))
    )
  }

  /** Number of tasks for a source of unknown size, if it is set. */
  def sourceDefault: Option[Int] = Some(Settings.SourcesDefaultParallelism.get(conf)).filter(_ != -1)

  /** The query's share of the registered task slots; `None` while no executor is registered. */
  lazy val clusterSlots: Option[Int] = Some(Cluster.shareOfSlots(sparkContext)).filter(_ > 0)

  /**
   * Bytes of execution memory that a task may fill with rows; `None` if memory sets no limit. Tasks cannot evict
   * broadcasts from the half of the memory that is reserved for storage (`UnifiedMemoryManager`).
   */
  def taskMemory(broadcasts: Long): Option[Long] =
    if (!SessionPolicy.limitsMemory(conf, sparkContext)) None
    else
      Cluster.recentTaskMemory(sparkContext).map { case (bytes, slots) =>
        ((bytes - broadcasts / slots).max(bytes / 2) * Settings.MemoryFraction.get(conf)).toLong.max(1)
      }

  /** Whether stages use the available task slots, instead of requesting the slots that they need. */
  lazy val reactive: Boolean = Settings.Mode.get(conf) match {
    case "auto" | "observe" => !slotsFollow
    case mode               => mode == "reactive"
  }

  /** Whether the number of task slots follows the demand of queries. */
  private lazy val slotsFollow: Boolean =
    Cluster.isDynamic(sparkContext) || (Settings.RequestExecutors.get(conf) && Cluster.canBeAsked(sparkContext))

  /** `None` if the conf is not set. Spark 4.3 knows the key, and refuses a default that is not a number. */
  private def maxReducerPartitions: Option[Int] = {
    val key = SessionPolicy.MaxReducerPartitions
    Option.when(conf.contains(key))(conf.getConfString(key)).flatMap(_.toIntOption).filter(_ >= 1)
  }

  /** The target size per task. If it is not set, it is a size of Spark's with this name and key. */
  private[apportion] def dataVolumePerTask(sparks: Long, name: String, key: String): (Long, ValueSource) =
    Settings.DataVolumePerTask.get(conf) match {
      case Some(bytes) => (bytes, setBy(Settings.DataVolumePerTask.key))
      case None        => (sparks.max(1), ofSpark(s"$name, ${setBy(key).text}"))
    }

  private[apportion] def ofSpark(text: String): ValueSource = ValueSource(SourceKind.Spark, text)

  private[apportion] def setBy(key: String): ValueSource = conf match {
    case query: QueryConf => query.sourceOf(key).getOrElse(setForSession(key))
    case _                => setForSession(key)
  }

  private def setForSession(key: String): ValueSource =
    if (!conf.contains(key)) ValueSource.Default
    else {
      val value = conf.getConfString(key)
      if (!Cluster.submitted(sparkContext, key).contains(value)) ValueSource(SourceKind.Session, "session setting")
      else if (Cluster.defaults.get(key).contains(value))
        ValueSource(SourceKind.SparkDefaults, "spark-defaults.conf")
      else ValueSource(SourceKind.Submitted, "submit-time conf")
    }
}

object SessionPolicy {

  /** Waves of tasks below Spark's minimum size. They cost some milliseconds each. */
  private val WavesOfTinyTasks = 4L

  /** Whether the settings round the number of tasks to a power of two. */
  def isPowerOfTwo(conf: SQLConf): Boolean = Policy.isPowerOfTwo(isBalanced(conf), rounding(conf))

  /** Whether the memory of Spark's operators counts. With another engine, it does only if the user says so. */
  def limitsMemory(conf: SQLConf, sparkContext: SparkContext): Boolean =
    Settings.MemoryEnabled
      .get(conf) && (conf.contains(Settings.MemoryEnabled.key) || !Cluster.hasOtherEngine(sparkContext))

  private def isBalanced(conf: SQLConf): Boolean = Settings.Ranges.get(conf) == "balanced"

  private def rounding(conf: SQLConf): Rounding = Rounding.all.find(_.name == Settings.Rounding.get(conf)).get

  /** Maximum number of partitions that Spark coalesces for a task, since Spark 4.3 (SPARK-58004). */
  private val MaxReducerPartitions = "spark.sql.adaptive.coalescePartitions.maxReducerPartitionsPerTask"
}
