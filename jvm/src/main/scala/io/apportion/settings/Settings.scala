package io.apportion.settings

import io.apportion.decision
import io.apportion.decision.Policy
import org.apache.spark.sql.internal.SQLConf

/** Settings that every decision reads. Other packages have settings of their own. */
object Settings extends SettingRegistry {

  /** Whether Apportion only records decisions. */
  def isObserving(conf: SQLConf): Boolean = Mode.get(conf) == "observe"

  val Enabled: SettingEntry[Boolean] = setting(
    "enabled",
    Category.General,
    "Whether Apportion decides how many tasks read shuffles and scan files. If false, Spark's own rules apply. Set " +
      "it to false to compare with plain Spark, or to find out whether Apportion causes a problem."
  ).boolean(default = true)

  val Mode: SettingEntry[String] = setting(
    "mode",
    Category.General,
    "How decisions use the task slots of the cluster. `active`: only the size of the data decides. `reactive`: " +
      "small stages also use all available task slots, in tasks of `minTaskVolume` or more. `auto`: `reactive` on a " +
      "cluster of fixed size. With dynamic allocation or `resources.request`, `auto` uses the registered task slots " +
      "but requests only what the data needs. `observe`: Apportion records the decisions of `auto` and changes " +
      "nothing. Use `active` if many queries share the cluster."
  ).choice(default = "auto", Allowed.OneOf("auto", "active", "reactive", "observe"))

  val RulesDisabled: SettingEntry[Set[String]] = setting(
    "rules.disabled",
    Category.General,
    "Names of Apportion's rules to switch off, separated by commas, as in `spark.sql.optimizer.excludedRules`. Use " +
      "it if a rule fails; the log names the rule. To switch off all rules, set `enabled` to false."
  ).names(new Allowed.SomeOf(SettingRegistry.rules.map(_.name)))

  val DataVolumePerTask: SettingEntry[Option[Long]] = setting(
    "dataVolumePerTask",
    Category.TasksPerStage,
    "Target size per task: the number of bytes that each task reads. Shuffle data counts as it is stored " +
      "(compressed), unless `volume.measure` changes that. If not set, shuffles use " +
      "`spark.sql.adaptive.advisoryPartitionSizeInBytes` and scans use `spark.sql.files.maxPartitionBytes`. Lower it " +
      "if tasks spill. Raise it if stages have many short tasks."
  ).optionalSize(Allowed.AtLeast(1, " byte"))

  val MinParallelism: SettingEntry[Int] = setting(
    "minParallelism",
    Category.TasksPerStage,
    "Minimum number of tasks of a stage that reads a shuffle, rounded up to a power of two (see `rounding`). Raise " +
      "it if small stages do expensive work per row, such as slow user-defined functions."
  ).int(default = 1, Allowed.AtLeast(1))

  val MaxParallelism: SettingEntry[Int] = setting(
    "maxParallelism",
    Category.TasksPerStage,
    "Maximum number of tasks of a stage that reads a shuffle, rounded down to a power of two (see `rounding`). It " +
      "does not limit scans: also set `sources.maxParallelism` to limit how much of a cluster one query can use."
  ).int(default = 32768, Allowed.AtLeast(1))

  val Parallelism: SettingEntry[Int] = setting(
    "parallelism",
    Category.TasksPerStage,
    "Fixed number of tasks for every stage that reads a shuffle, without rounding. -1 (default) decides from the " +
      "size of the data. Set it for tests and experiments. To set the number for one query block, use the hint " +
      "`PARALLELISM`."
  ).int(default = -1, Allowed.AtLeast(1, or = Some(-1L -> "decide")))

  val MinTaskVolume: SettingEntry[Long] = setting(
    "minTaskVolume",
    Category.TasksPerStage,
    "Minimum number of bytes per task when a small stage is spread over the available task slots (see `mode`). It " +
      "is also the maximum target size per task in a stage with a join that multiplies rows. Lower it if small " +
      "stages do expensive work per row. Raise it if many tiny tasks cost more time than they save."
  ).size(default = 1L << 20, Allowed.AtLeast(1, " byte"))

  val BroadcastRatio: SettingEntry[Double] = setting(
    "broadcastRatio",
    Category.TasksPerStage,
    "Maximum share of `dataVolumePerTask` that broadcast tables take up. Every task reads broadcast tables in full, " +
      "so they leave less room for shuffle data. Raise it if tasks with large broadcast tables run out of memory: " +
      "each task then reads less shuffle data."
  ).double(default = 0.5, Allowed.Between(0, 1))

  val VolumeMeasure: SettingEntry[String] = setting(
    "volume.measure",
    Category.TasksPerStage,
    "How `dataVolumePerTask` and `minTaskVolume` count the bytes of a shuffle. `compressed`: bytes as stored. " +
      "`estimated`: uncompressed bytes of the rows, from the statistics of finished stages. Use `estimated` if the " +
      "data compresses so well that a small shuffle becomes a large amount of rows."
  ).choice(default = "compressed", Allowed.OneOf("compressed", "estimated"))

  val Layouts: Allowed.OneOf = Allowed.OneOf("even", "balanced")

  val Ranges: SettingEntry[String] = setting(
    "ranges",
    Category.TasksPerStage,
    "How shuffle partitions are assigned to tasks. `even`: all ranges contain the same number of shuffle " +
      "partitions. `balanced`: the ranges are cut so that the largest has as few bytes as possible. Use `balanced` " +
      "if shuffle partitions differ in size."
  ).choice(default = "even", Layouts)

  val Rounding: SettingEntry[String] = setting(
    "rounding",
    Category.TasksPerStage,
    "How the number of tasks is rounded if `ranges` is `balanced`; even ranges always use a power of two. " +
      "`power-of-two`: the nearest power of two. `exact`: no rounding. `waves`: a multiple of the available task " +
      "slots, if the stage then finishes sooner; the same as `exact` with dynamic allocation or `resources.request`. " +
      "Use `waves` on a cluster of fixed size to avoid a last wave of few tasks."
  ).choice(default = decision.Rounding.PowerOfTwo.name, Allowed.OneOf(decision.Rounding.all.map(_.name): _*))

  val MemoryEnabled: SettingEntry[Boolean] = setting(
    "memory.enabled",
    Category.TasksPerStage,
    "Whether a stage gets more tasks if the rows that one task holds would not fit its memory. Set it to false to " +
      "decide by stored bytes alone. If `spark.plugins` names Gluten, the RAPIDS Accelerator or Comet, this is off " +
      "until you set it to true: their operators use other memory."
  ).boolean(default = true)

  val MemoryFraction: SettingEntry[Double] = setting(
    "memory.fraction",
    Category.TasksPerStage,
    "Part of a task slot's execution memory that rows may fill. Lower it if tasks still spill. The rest is for the " +
      "buffers of shuffles and files, and for the error of the estimate."
  ).double(default = 0.9, Allowed.Between(0, 1))

  val SplitsWithOtherShuffleManagers: SettingEntry[Boolean] = setting(
    "splitsWithOtherShuffleManagers",
    Category.TasksPerStage,
    "Whether Apportion splits skewed shuffle partitions and reads map outputs locally if `spark.shuffle.manager` " +
      "is not Spark's own. Both read the output of only some map tasks, which is slow in many remote shuffle " +
      "services. Set it to true if your shuffle service reads the output of single map tasks fast."
  ).boolean(default = false)

  val AdaptiveWrites: SettingEntry[Boolean] = setting(
    "adaptiveWrites",
    Category.Internal,
    "Whether map tasks decide, while they write a shuffle, how finely they divide its rows. If false, it is as if " +
      "`rules.disabled` had AdaptiveWrites."
  ).boolean(default = true)

  val SourcesDefaultParallelism: SettingEntry[Int] = setting(
    "sources.defaultParallelism",
    Category.FileScans,
    "Number of tasks for a source of unknown size, such as the table function `range`, unless the query sets the " +
      "number. Set it if Spark's default parallelism is too low or too high for such sources."
  ).int(default = -1, Allowed.AtLeast(1, or = Some(-1L -> "leave it to Spark")))

  val RequestExecutors: SettingEntry[Boolean] = setting(
    "resources.request",
    Category.TaskSlots,
    "Whether Apportion requests executors from the cluster manager, enough for the target number of task slots. " +
      "With dynamic allocation, it tells Spark how many tasks the next stages have. Ignored in mode `reactive` and in " +
      "local mode. Set it to true on a standalone, YARN or Kubernetes cluster."
  ).boolean(default = false)

  val EventsEnabled: SettingEntry[Boolean] = setting(
    "events.enabled",
    Category.Reporting,
    "Whether Apportion posts queries and decisions to Spark's listener bus, for the event log, Spark's UI and other " +
      "listeners. If false, the event log does not grow, but only `apportion_decisions()` and EXPLAIN show " +
      "decisions. Set it to false if event logs become too large."
  ).boolean(default = true)

  override private[apportion] def rules: Seq[RuleSwitch] = Seq(
    RuleSwitch(
      "UserRepartitions",
      "A `repartition(n, columns)` that Spark drops as redundant does not keep its number of partitions."
    ),
    RuleSwitch("AdaptiveWrites", "Spark writes its shuffles itself, in its own number of partitions."),
    RuleSwitch(
      "DecideShuffleReads",
      "Spark coalesces shuffle partitions and splits skewed ones. Apportion records no decisions about shuffles."
    ),
    RuleSwitch("LocalReads", "Tasks do not read map outputs locally after Apportion has changed a layout."),
    RuleSwitch("ReportDecisions", "Apportion makes decisions about shuffles but does not record them.")
  )

  override private[settings] def problems(conf: SQLConf): Seq[String] = Policy
    .boundsProblem(
      MinParallelism.get(conf),
      MaxParallelism.get(conf),
      SessionPolicy.isPowerOfTwo(conf),
      SettingEntry.Prefix
    )
    .toSeq
}
