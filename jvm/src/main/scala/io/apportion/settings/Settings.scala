package io.apportion.settings

import io.apportion.decision
import org.apache.spark.sql.internal.SQLConf

/** All settings of Apportion. Spark's `SET -v`, the Python package and the documentation read them from here. */
object Settings extends SettingRegistry {

  /** Registers all settings with Spark, before a session reads its conf: Spark then refuses wrong values. */
  def register(): Unit = all.foreach(_.key)

  /** Whether Apportion only records decisions. */
  def isObserving(conf: SQLConf): Boolean = Mode.get(conf) == "observe"

  val Enabled: SettingEntry[Boolean] = boolean(
    "enabled",
    Category.General,
    default = true,
    "Whether Apportion decides how many tasks read shuffles and scan files. If false, Spark's own rules apply. Set " +
      "it to false to compare with plain Spark, or to find out whether Apportion causes a problem."
  )

  val Mode: SettingEntry[String] = choice(
    "mode",
    Category.General,
    default = "auto",
    Allowed.OneOf("auto", "active", "reactive", "observe"),
    "How decisions use the task slots of the cluster. `active`: only the size of the data decides. `reactive`: small " +
      "stages also use all available task slots, as long as each task reads at least `minTaskVolume`. `auto`: " +
      "`reactive` on a cluster of fixed size. With dynamic allocation or `resources.request`, `auto` uses the " +
      "registered task slots but requests only what the data needs. `observe`: Apportion records the decisions of " +
      "`auto` and does not change Spark's plans. Use `active` if many queries share the cluster. Use `observe` to " +
      "see decisions before they take effect."
  )

  val RulesDisabled: SettingEntry[Set[String]] = names(
    "rules.disabled",
    Category.General,
    Allowed.SomeOf(RuleNames.all: _*),
    "Names of Apportion's rules to switch off, separated by commas, as in `spark.sql.optimizer.excludedRules`. Use " +
      "it if a rule fails; the log names the rule. To switch off all rules, set `enabled` to false."
  )

  val Policies: SettingEntry[Option[String]] = staticLocation(
    "policies",
    Category.General,
    Allowed.Location("a YAML or JSON file, such as /folder/policies.yaml or hdfs://host/policies.json"),
    "File with rules that set settings and hints for the queries that they match. [Policies](policies.md) describes " +
      "it. Apportion reads it again when it changes. Set it when Spark starts; sessions cannot change it. Use it to " +
      "tune jobs whose SQL and settings you cannot edit."
  )

  val DataVolumePerTask: SettingEntry[Option[Long]] = optionalSize(
    "dataVolumePerTask",
    Category.TasksPerStage,
    Allowed.AtLeast(1, " byte"),
    "Target size per task: the number of bytes that each task reads. Shuffle data counts as it is stored " +
      "(compressed), unless `volume.measure` changes that. If not set, shuffles use " +
      "`spark.sql.adaptive.advisoryPartitionSizeInBytes` and file scans use `spark.sql.files.maxPartitionBytes`. " +
      "Lower it if tasks spill or run out of memory. Raise it if stages have many short tasks."
  )

  val MinParallelism: SettingEntry[Int] = int(
    "minParallelism",
    Category.TasksPerStage,
    default = 1,
    Allowed.AtLeast(1),
    "Minimum number of tasks of a stage that reads a shuffle. Apportion rounds it up to a power of two, unless " +
      "balanced ranges use another `rounding`. Raise it if small stages do expensive work per row, such as slow " +
      "user-defined functions."
  )

  val MaxParallelism: SettingEntry[Int] = int(
    "maxParallelism",
    Category.TasksPerStage,
    default = 32768,
    Allowed.AtLeast(1),
    "Maximum number of tasks of a stage that reads a shuffle. Apportion rounds it down to a power of two, unless " +
      "balanced ranges use another `rounding`. It does not limit scans: also set `sources.maxParallelism` to limit " +
      "how much of a cluster one query can use."
  )

  val Parallelism: SettingEntry[Int] = int(
    "parallelism",
    Category.TasksPerStage,
    default = -1,
    Allowed.AtLeast(1, or = Some(-1L -> "decide")),
    "Fixed number of tasks for every stage that reads a shuffle. Apportion uses the number as given, without " +
      "rounding. Adaptive writes make at least as many shuffle partitions, up to 32768. -1 " +
      "(default) decides from the size of the data. Set it for tests and experiments. To set the number for one " +
      "query block, use the hint `PARALLELISM`."
  )

  val MinTaskVolume: SettingEntry[Long] = size(
    "minTaskVolume",
    Category.TasksPerStage,
    default = 1L << 20,
    Allowed.AtLeast(1, " byte"),
    "Minimum number of bytes per task when a small stage is spread over the available task slots (see `mode`). It is " +
      "also the maximum target size per task in a stage with a join that multiplies rows, such as a cross join. " +
      "Lower it if small stages do expensive work per row. Raise it if many tiny tasks cost more time than they save."
  )

  val BroadcastRatio: SettingEntry[Double] = double(
    "broadcastRatio",
    Category.TasksPerStage,
    default = 0.5,
    Allowed.Between(0, 1),
    "Maximum share of `dataVolumePerTask` that broadcast tables take up. Every task reads broadcast tables in full, " +
      "so they leave less room for shuffle data. Raise it if tasks with large broadcast tables run out of memory: " +
      "each task then reads less shuffle data."
  )

  val VolumeMeasure: SettingEntry[String] = choice(
    "volume.measure",
    Category.TasksPerStage,
    default = "compressed",
    Allowed.OneOf("compressed", "estimated"),
    "How `dataVolumePerTask` and `minTaskVolume` count the bytes of a shuffle. `compressed`: bytes as stored. " +
      "`estimated`: uncompressed bytes of the rows, from the statistics of finished stages. Use `estimated` if the " +
      "data compresses so well that a small shuffle becomes a large amount of rows."
  )

  val Layouts: Allowed.OneOf = Allowed.OneOf("even", "balanced")

  val Ranges: SettingEntry[String] = choice(
    "ranges",
    Category.TasksPerStage,
    default = "even",
    Layouts,
    "How shuffle partitions are assigned to tasks. Each task reads a contiguous range. `even`: all ranges contain " +
      "the same number of shuffle partitions. `balanced`: the ranges are cut so that the largest has as few bytes as " +
      "possible; there are at most as many ranges as decided tasks. Use `balanced` if shuffle partitions differ in " +
      "size. Above `spark.shuffle.minNumPartitionsToHighlyCompress` partitions, Spark knows only the average size of " +
      "small partitions."
  )

  val Rounding: SettingEntry[String] = choice(
    "rounding",
    Category.TasksPerStage,
    default = decision.Rounding.PowerOfTwo.name,
    Allowed.OneOf(decision.Rounding.all.map(_.name): _*),
    "How the number of tasks is rounded if `ranges` is `balanced`; even ranges always use a power of two. " +
      "`power-of-two`: the nearest power of two. `exact`: no rounding. `waves`: a multiple of the available task " +
      "slots, if the stage then finishes sooner; the same as `exact` with dynamic allocation or `resources.request`. " +
      "Use `waves` on a cluster of fixed size to avoid a last wave of tasks that leaves most slots idle."
  )

  val MemoryEnabled: SettingEntry[Boolean] = boolean(
    "memory.enabled",
    Category.TasksPerStage,
    default = true,
    "Whether a stage gets more tasks if the rows that one task holds would not fit its memory. Sorts, final " +
      "aggregates and hash joins hold rows. Tasks that hold too much spill to disk or run out of memory. Set it to " +
      "false to decide by stored bytes alone. If `spark.plugins` names Gluten, the RAPIDS Accelerator or Comet, this is " +
      "off until you set it to true: their operators use other memory."
  )

  val MemoryFraction: SettingEntry[Double] = double(
    "memory.fraction",
    Category.TasksPerStage,
    default = 0.9,
    Allowed.Between(0, 1),
    "Part of a task slot's execution memory that rows may fill. Lower it if tasks still spill. The rest is for the " +
      "buffers of shuffles and files, and for the error of the estimate."
  )

  val TargetTaskTime: SettingEntry[Long] = duration(
    "targetTaskTime",
    Category.TasksPerStage,
    default = 0,
    Allowed.AtLeast(0, " seconds"),
    "Run time that a task should have. An earlier run shows how many bytes a task of the stage reads per second. The " +
      "target size per task is then what a task reads in this time. Hints and the sizes of writes have priority. 0 " +
      "(default) decides by bytes alone. Has no effect if `volume.measure` is `estimated`. Set it for stages that " +
      "spend their time in Python functions or other slow code."
  )

  val WriteTargetFileSize: SettingEntry[Option[Long]] = optionalSize(
    "write.targetFileSize",
    Category.TasksPerStage,
    Allowed.AtLeast(1 << 16, " bytes"),
    "Target size of the files that a statement writes. Apportion sets the number of tasks that write, and adds a " +
      "rebalance before tables with partitions. [File sizes](file-sizes.md) lists the formats. If not set, file " +
      "sizes do not matter, unless the table has a property of this name. Set it for tables that many queries read."
  )

  val MaxBlocksPerTask: SettingEntry[Long] = long(
    "maxBlocksPerTask",
    Category.TasksPerStage,
    default = 1L << 15,
    Allowed.AtLeast(1),
    "Maximum number of shuffle blocks per task. A shuffle has one block for each map task and each shuffle partition " +
      "that is not empty. The limit is 32 times higher where Spark fetches all blocks of a map task in one request " +
      "(`spark.sql.adaptive.fetchShuffleBlocksInBatch`). Apportion adds tasks, up to `maxParallelism`, to stay below " +
      "the limit. A task that reads a single partition may exceed it. Lower it if tasks are slow because they fetch " +
      "many small blocks."
  )

  val SplitsWithOtherShuffleManagers: SettingEntry[Boolean] = boolean(
    "splitsWithOtherShuffleManagers",
    Category.TasksPerStage,
    default = false,
    "Whether Apportion splits skewed shuffle partitions and reads map outputs locally if `spark.shuffle.manager` is " +
      "not Spark's own. Both read the output of only some map tasks, which is slow in many remote shuffle services. " +
      "If false, Apportion keeps the splits and local reads that Spark makes and adds none. Set it to true if your " +
      "shuffle service reads the output of single map tasks fast."
  )

  val AdaptiveWrites: SettingEntry[Boolean] = boolean(
    "adaptiveWrites",
    Category.ShufflePartitions,
    default = true,
    "Whether map tasks decide, while they write a shuffle, how finely they divide its rows. The number of shuffle " +
      "partitions then costs nothing, and Apportion makes enough of them for any size. If false, Spark writes its " +
      "shuffles in `spark.sql.shuffle.partitions` partitions. Set it to false to find out whether adaptive writes " +
      "cause a problem."
  )

  val HistoryPath: SettingEntry[Option[String]] = staticLocation(
    "history.path",
    Category.ShufflePartitions,
    Allowed.Location("a directory, such as /folder or hdfs://host/folder"),
    "Directory where Apportion stores how much memory the stages of a query needed, and the sizes of its broadcast " +
      "tables. The next run of the query uses them. Literals of the query are not stored. If not set, Apportion stores " +
      "nothing. Set it when Spark starts; sessions cannot change it. Use it for queries that run regularly."
  )

  val SourcesEnabled: SettingEntry[Boolean] = boolean(
    "sources.enabled",
    Category.FileScans,
    default = true,
    "Whether Apportion decides how many tasks scan files. If false, Spark decides from " +
      "`spark.sql.files.maxPartitionBytes`. Scans while adaptive execution is off, such as those of streams with state, " +
      "are left to Spark unless you set their number of tasks. Set it to false to keep Spark's own scans."
  )

  val SourcesParallelism: SettingEntry[Int] = int(
    "sources.parallelism",
    Category.FileScans,
    default = -1,
    Allowed.AtLeast(1, or = Some(-1L -> "decide")),
    "Number of tasks for every file scan, as far as the files can be split. -1 (default) decides from the size of " +
      "the files and `dataVolumePerTask`, or `spark.sql.files.maxPartitionBytes` if that is not set. It never makes " +
      "fewer tasks than Spark, unless you set `dataVolumePerTask` or `sources.maxParallelism`. To set the number for " +
      "one scan, use the hint `SOURCE_PARALLELISM` or the reader option `apportion.tasks`."
  )

  val SourcesMaxParallelism: SettingEntry[Int] = int(
    "sources.maxParallelism",
    Category.FileScans,
    default = 1000,
    Allowed.AtLeast(1),
    "Maximum number of tasks that Apportion decides for a file scan. If you do not set it and Spark would make more " +
      "tasks, Spark's number is the maximum. Tasks of very large scans are then no larger than Spark's. Lower it to " +
      "limit how much of a cluster one scan can use."
  )

  val SourcesDefaultParallelism: SettingEntry[Int] = int(
    "sources.defaultParallelism",
    Category.FileScans,
    default = -1,
    Allowed.AtLeast(1, or = Some(-1L -> "leave it to Spark")),
    "Number of tasks for a source of unknown size, such as the table function `range`, unless the query sets the " +
      "number. Set it if Spark's default parallelism is too low or too high for such sources."
  )

  val HintsStrict: SettingEntry[Boolean] = boolean(
    "hints.strict",
    Category.Hints,
    default = false,
    "Whether a query fails if one of Apportion's hints is misspelled or cannot be applied. If false, Apportion " +
      "ignores the hint and logs a warning. Set it to true in development and tests."
  )

  val MinSlots: SettingEntry[Int] = int(
    "resources.minSlots",
    Category.TaskSlots,
    default = 0,
    Allowed.AtLeast(0),
    "Minimum number of task slots. No stage of a query starts before they are registered. A query waits up to " +
      "`resources.timeout` for them and fails if they are not available. 0 (default) disables waiting. With dynamic " +
      "allocation, a query waits for no more slots than `spark.dynamicAllocation.minExecutors` provides, because " +
      "Spark requests no executors before there are tasks. Set it if queries start before the cluster has its " +
      "executors."
  )

  val TargetSlots: SettingEntry[Int] = int(
    "resources.targetSlots",
    Category.TaskSlots,
    default = -1,
    Allowed.AtLeast(1, or = Some(-1L -> "as many as stages have tasks")),
    "Target number of task slots. A query that waits for `resources.minSlots` starts at once when it has the target, " +
      "and never waits for more. If `resources.request` is true, Apportion requests this many slots. Set it to " +
      "request a fixed number."
  )

  val MaxSlots: SettingEntry[Int] = int(
    "resources.maxSlots",
    Category.TaskSlots,
    default = -1,
    Allowed.AtLeast(1, or = Some(-1L -> "maxParallelism")),
    "Maximum number of task slots that Apportion requests. Set it to limit the number of executors."
  )

  val RequestExecutors: SettingEntry[Boolean] = boolean(
    "resources.request",
    Category.TaskSlots,
    default = false,
    "Whether Apportion requests executors from the cluster manager, enough for the target number of task slots. " +
      "With dynamic allocation, it tells Spark how many tasks the next stages have. Ignored in mode `reactive` and in " +
      "local mode. Set it to true on a standalone, YARN or Kubernetes cluster."
  )

  val ResourceTimeout: SettingEntry[Long] = duration(
    "resources.timeout",
    Category.TaskSlots,
    default = 300,
    Allowed.AtLeast(0, " seconds"),
    "Maximum time that a query waits for `resources.minSlots`, at its start and after it loses executors. The query " +
      "fails after that time. Raise it if executors start slowly."
  )

  val Stabilization: SettingEntry[Long] = duration(
    "resources.stabilization",
    Category.TaskSlots,
    default = 10,
    Allowed.AtLeast(0, " seconds"),
    "Time without a change in the number of task slots after which a waiting query starts with fewer than its " +
      "target. Raise it if executors start slowly one after the other."
  )

  val Cooldown: SettingEntry[Long] = duration(
    "resources.cooldown",
    Category.TaskSlots,
    default = 30,
    Allowed.AtLeast(0, " seconds"),
    "Minimum time between two changes of the number of executors that Apportion requests. It does not apply while a " +
      "query waits for `resources.minSlots`. Raise it if the number of executors changes too often."
  )

  val Rescaling: SettingEntry[String] = text(
    "resources.rescaling",
    Category.TaskSlots,
    default = "fixed",
    Allowed.Text("fixed, backlog, deadline or the name of a class"),
    "Policy that changes the target number of task slots while a query runs. `fixed`: only the query's stages change " +
      "it. `backlog`: the target follows the bytes that the tasks still have to read and their speed, so that they " +
      "finish within `resources.finishWithin`. `deadline`: the smallest number with which the whole query ends within " +
      "`resources.finishWithin`. You can also name a class that extends `io.apportion.resources.RescalingPolicy` and " +
      "has a constructor without arguments."
  )

  val FinishWithin: SettingEntry[Long] = duration(
    "resources.finishWithin",
    Category.TaskSlots,
    default = 600,
    Allowed.AtLeast(1, " second"),
    "Time within which each query must end if `resources.rescaling` is `deadline`, or must read its remaining input if " +
      "it is `backlog`. The hint `FINISH_WITHIN` sets it for a query. Lower it to finish sooner on more executors."
  )

  val PollInterval: SettingEntry[Long] = duration(
    "resources.pollInterval",
    Category.TaskSlots,
    default = 10,
    Allowed.AtLeast(1, " second"),
    "Time between two calls of the policy that `resources.rescaling` selects. Raise it if the policy is expensive."
  )

  val RetainedDecisions: SettingEntry[Int] = int(
    "retainedDecisions",
    Category.Reporting,
    default = 1000,
    Allowed.AtLeast(1),
    "Number of decisions that `apportion_decisions()` keeps for a session. Apportion drops older ones. Raise it if " +
      "you look at the decisions of many queries at once."
  )

  val EventsEnabled: SettingEntry[Boolean] = boolean(
    "events.enabled",
    Category.Reporting,
    default = true,
    "Whether Apportion posts queries and decisions to Spark's listener bus, for the event log, Spark's UI and other " +
      "listeners. If false, the event log does not grow, but only `apportion_decisions()` and EXPLAIN show " +
      "decisions. Set it to false if event logs become too large."
  )
}
