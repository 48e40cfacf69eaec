package io.apportion.settings

import io.apportion.decision
import org.apache.spark.sql.internal.SQLConf

/** Every setting of Apportion, declared once: Spark's `SET -v`, the Python package and the docs read them from here. */
object Settings {

  /** Makes Spark know all settings: before a session reads its conf, so that wrong values are refused then. */
  def register(): Unit = all.foreach(_.key)

  /** Whether decisions are only recorded. */
  def isObserving(conf: SQLConf): Boolean = Mode.get(conf) == "observe"

  private val V010 = "0.1.0"

  val Enabled: SettingEntry[Boolean] = SettingEntry.boolean(
    "enabled",
    default = true,
    V010,
    "Whether Apportion decides how shuffles are read. If not, Spark's own rules stay in force."
  )

  val Parallelism: SettingEntry[Int] = SettingEntry.int(
    "parallelism",
    default = -1,
    Allowed.AtLeast(1, or = Some(-1L -> "decide")),
    V010,
    "Tasks of every stage that reads a shuffle, used as given: the shuffle gets as many subpartitions, 32768 at most, unless " +
      "the query gives their number. -1 decides from the bytes."
  )

  val MinParallelism: SettingEntry[Int] = SettingEntry.int(
    "minParallelism",
    default = 1,
    Allowed.AtLeast(1),
    V010,
    "The least tasks that a decided stage gets, raised to a power of two."
  )

  val MaxParallelism: SettingEntry[Int] = SettingEntry.int(
    "maxParallelism",
    default = 32768,
    Allowed.AtLeast(1),
    V010,
    "The most tasks that a decided stage gets, lowered to a power of two."
  )

  val DataVolumePerTask: SettingEntry[Option[Long]] = SettingEntry.optionalSize(
    "dataVolumePerTask",
    Allowed.AtLeast(1, " byte"),
    V010,
    "Bytes of shuffle data that a task should read, as they are stored (compressed). " +
      "If not set: spark.sql.adaptive.advisoryPartitionSizeInBytes."
  )

  val VolumeMeasure: SettingEntry[String] = SettingEntry.choice(
    "volume.measure",
    default = "compressed",
    Allowed.OneOf("compressed", "estimated"),
    V010,
    "What dataVolumePerTask and minTaskVolume measure of shuffles. compressed: bytes as they are stored. estimated: bytes of the " +
      "rows that these become in a task, which finished stages have counted; for data that compresses well."
  )

  val BroadcastRatio: SettingEntry[Double] = SettingEntry.double(
    "broadcastRatio",
    default = 0.5,
    Allowed.Between(0, 1),
    V010,
    "The part of dataVolumePerTask that broadcast inputs, which every task reads whole, can take up at most."
  )

  val Layouts: Allowed.OneOf = Allowed.OneOf("even", "balanced")

  val Ranges: SettingEntry[String] = SettingEntry.choice(
    "ranges",
    default = "even",
    Layouts,
    V010,
    "How subpartitions are dealt to tasks, in contiguous ranges. even: ranges hold equally many subpartitions. balanced: at most " +
      "as many ranges as tasks are decided, the largest of which has as few bytes as possible. Spark knows only the average of " +
      "small subpartitions where there are more than spark.shuffle.minNumPartitionsToHighlyCompress."
  )

  val Rounding: SettingEntry[String] = SettingEntry.choice(
    "rounding",
    default = decision.Rounding.PowerOfTwo.name,
    Allowed.OneOf(decision.Rounding.all.map(_.name): _*),
    V010,
    "How the number of tasks is rounded with balanced ranges; with even ranges it is a power of two always. exact: not at all. " +
      "waves: to as many tasks as fill the waves in which they run on the slots that are there, where that is done sooner; " +
      "as exact where slots come and go (dynamic allocation)."
  )

  val MaxBlocksPerTask: SettingEntry[Long] = SettingEntry.long(
    "maxBlocksPerTask",
    default = 1L << 15,
    Allowed.AtLeast(1),
    V010,
    "The most shuffle blocks that a task fetches. A shuffle has one block for each map task and each partition that is not empty. " +
      "A task may fetch 32 times as many blocks where Spark fetches all blocks of a map task in one request " +
      "(spark.sql.adaptive.fetchShuffleBlocksInBatch). Stages get more tasks to stay below it, up to maxParallelism. A task that " +
      "reads a single partition may fetch more."
  )

  val SplitsWithOtherShuffleManagers: SettingEntry[Boolean] = SettingEntry.boolean(
    "splitsWithOtherShuffleManagers",
    default = false,
    V010,
    "Whether Apportion splits skewed partitions and reads map outputs locally where spark.shuffle.manager is not Spark's own. Both " +
      "read the output of some map tasks alone, which is slow in many remote shuffle services. If false, Apportion keeps the splits " +
      "and local reads that Spark makes, and adds none."
  )

  val Subpartitions: SettingEntry[String] = SettingEntry.choice(
    "subpartitions",
    default = "estimated",
    Allowed.OneOf("estimated", "spark"),
    V010,
    "The number of subpartitions of a shuffle, if the query does not give it. estimated: fewer than Spark's number if the upper end " +
      "of the estimated bytes needs no more, and more than Spark's as far as the lower end needs it. spark: " +
      "spark.sql.shuffle.partitions, raised to a power of two."
  )

  val HistoryPath: SettingEntry[Option[String]] = SettingEntry.staticDirectory(
    "history.path",
    V010,
    "A directory where Apportion keeps the sizes of shuffles, so that the next run of a query chooses its subpartitions by them. " +
      "Literals are not kept. Set it when Spark starts: sessions cannot change it. Nothing is kept if it is not set."
  )

  val MaxBlocksPerShuffle: SettingEntry[Long] = SettingEntry.long(
    "maxBlocksPerShuffle",
    default = 1L << 24,
    Allowed.AtLeast(1),
    V010,
    "The most blocks, subpartitions times likely map tasks, that an estimated number of subpartitions makes: each is a write, a " +
      "fetch, and an entry in the driver's memory."
  )

  val MinTaskVolume: SettingEntry[Long] = SettingEntry.size(
    "minTaskVolume",
    default = 1L << 20,
    Allowed.AtLeast(1, " byte"),
    V010,
    "Bytes that every task keeps when a stage is spread over the cluster's slots (reactive mode), and at most the volume of " +
      "a task under a join that multiplies rows."
  )

  val Mode: SettingEntry[String] = SettingEntry.choice(
    "mode",
    default = "auto",
    Allowed.OneOf("auto", "active", "reactive", "observe"),
    V010,
    "active: the bytes decide. reactive: they do, and small stages are spread over the slots that are there, as long as " +
      "every task keeps minTaskVolume. auto: active with dynamic allocation, or where resources.request asks the cluster manager; else reactive. " +
      "observe: Apportion records the decisions of auto and changes nothing in Spark's plans."
  )

  val SourcesEnabled: SettingEntry[Boolean] = SettingEntry.boolean(
    "sources.enabled",
    default = true,
    V010,
    "Whether Apportion decides how many tasks scan files. If not, Spark does, by spark.sql.files.maxPartitionBytes. Scans in " +
      "streaming queries and with adaptive execution off are left to Spark, unless a number is set for them."
  )

  val SourcesParallelism: SettingEntry[Int] = SettingEntry.int(
    "sources.parallelism",
    default = -1,
    Allowed.AtLeast(1, or = Some(-1L -> "decide")),
    V010,
    "Tasks of every scan of files, as far as the files can be cut so. -1 decides from the bytes: as many as dataVolumePerTask " +
      "makes, or spark.sql.files.maxPartitionBytes if that is not set, and not fewer than Spark makes unless a volume or a maximum " +
      "is set. The hint SOURCE_PARALLELISM and the reader's option apportion.tasks set one scan."
  )

  val SourcesMaxParallelism: SettingEntry[Int] = SettingEntry.int(
    "sources.maxParallelism",
    default = 1000,
    Allowed.AtLeast(1),
    V010,
    "The most tasks that are decided for a scan of files. Unless this is set, it is Spark's number of tasks if that is more, so " +
      "that scans of terabytes have no larger tasks than Spark's."
  )

  val SourcesDefaultParallelism: SettingEntry[Int] = SettingEntry.int(
    "sources.defaultParallelism",
    default = -1,
    Allowed.AtLeast(1, or = Some(-1L -> "leave it to Spark")),
    V010,
    "Tasks of a source whose size is not known and whose tasks the query does not give, as the table function range."
  )

  val MinSlots: SettingEntry[Int] = SettingEntry.int(
    "resources.minSlots",
    default = 0,
    Allowed.AtLeast(0),
    V010,
    "Slots without which no stage of a query starts: it waits for them, resources.timeout at most, and fails if they do not come. 0 " +
      "waits for nothing. With dynamic allocation, which asks for nothing before there are tasks, no more than its minExecutors " +
      "hold is waited for."
  )

  val TargetSlots: SettingEntry[Int] = SettingEntry.int(
    "resources.targetSlots",
    default = -1,
    Allowed.AtLeast(1, or = Some(-1L -> "as many as stages have tasks")),
    V010,
    "Slots that a query would like: it starts without waiting for more, and these are asked for if executors are."
  )

  val MaxSlots: SettingEntry[Int] = SettingEntry.int(
    "resources.maxSlots",
    default = -1,
    Allowed.AtLeast(1, or = Some(-1L -> "maxParallelism")),
    V010,
    "The most slots that are ever asked for."
  )

  val RequestExecutors: SettingEntry[Boolean] = SettingEntry.boolean(
    "resources.request",
    default = false,
    V010,
    "Whether the cluster manager is asked for executors with as many slots as queries would like (active mode). With dynamic " +
      "allocation, which asks itself, it is not."
  )

  val ResourceTimeout: SettingEntry[Long] = SettingEntry.duration(
    "resources.timeout",
    default = 300,
    Allowed.AtLeast(0, " seconds"),
    V010,
    "How long a query waits for its minSlots, at its start and after it has lost executors, before it fails."
  )

  val Stabilization: SettingEntry[Long] = SettingEntry.duration(
    "resources.stabilization",
    default = 10,
    Allowed.AtLeast(0, " seconds"),
    V010,
    "How long the number of slots must not have changed for a query to start with fewer than it would like."
  )

  val Cooldown: SettingEntry[Long] = SettingEntry.duration(
    "resources.cooldown",
    default = 30,
    Allowed.AtLeast(0, " seconds"),
    V010,
    "The least time between two changes of what the cluster is asked for, unless a query waits for its minSlots."
  )

  val Rescaling: SettingEntry[String] = SettingEntry.text(
    "resources.rescaling",
    default = "fixed",
    Allowed.Text("fixed, backlog or the name of a class"),
    V010,
    "What changes the slots that a running query would like. fixed: nothing but its stages. backlog: the bytes that its tasks have " +
      "still to read and the speed they are read with, so that they are read within resources.finishWithin. Or the name of a " +
      "class that extends io.apportion.resources.RescalingPolicy and needs no arguments."
  )

  val FinishWithin: SettingEntry[Long] = SettingEntry.duration(
    "resources.finishWithin",
    default = 600,
    Allowed.AtLeast(1, " second"),
    V010,
    "The time in which resources.rescaling=backlog means to read what waits."
  )

  val PollInterval: SettingEntry[Long] = SettingEntry.duration(
    "resources.pollInterval",
    default = 10,
    Allowed.AtLeast(1, " second"),
    V010,
    "How often resources.rescaling is asked."
  )

  val HintsStrict: SettingEntry[Boolean] = SettingEntry.boolean(
    "hints.strict",
    default = false,
    V010,
    "Whether a hint of Apportion's that cannot be used, or a misspelt hint, is an error of the query. If not, it is left " +
      "out with a warning in the log."
  )

  val RulesDisabled: SettingEntry[Set[String]] = SettingEntry.names(
    "rules.disabled",
    Allowed.SomeOf(RuleNames.all: _*),
    V010,
    "Rules of Apportion that do nothing, between commas, as in spark.sql.optimizer.excludedRules. To turn off all of them: enabled."
  )

  val RetainedDecisions: SettingEntry[Int] = SettingEntry.int(
    "retainedDecisions",
    default = 1000,
    Allowed.AtLeast(1),
    V010,
    "How many of a session's decisions are kept for apportion_decisions(); older ones are dropped."
  )

  val EventsEnabled: SettingEntry[Boolean] = SettingEntry.boolean(
    "events.enabled",
    default = true,
    V010,
    "Whether queries and decisions are posted on Spark's listener bus: for the event log, Spark's UI and whoever listens. If not, " +
      "the log does not grow by them, and only apportion_decisions() and EXPLAIN tell of them."
  )

  val all: Seq[SettingEntry[_]] = Seq(
    Enabled,
    Parallelism,
    MinParallelism,
    MaxParallelism,
    DataVolumePerTask,
    VolumeMeasure,
    BroadcastRatio,
    Ranges,
    Rounding,
    MaxBlocksPerTask,
    SplitsWithOtherShuffleManagers,
    Subpartitions,
    HistoryPath,
    MaxBlocksPerShuffle,
    MinTaskVolume,
    Mode,
    SourcesEnabled,
    SourcesParallelism,
    SourcesMaxParallelism,
    SourcesDefaultParallelism,
    MinSlots,
    TargetSlots,
    MaxSlots,
    RequestExecutors,
    ResourceTimeout,
    Stabilization,
    Cooldown,
    Rescaling,
    FinishWithin,
    PollInterval,
    HintsStrict,
    RulesDisabled,
    RetainedDecisions,
    EventsEnabled
  )
}
