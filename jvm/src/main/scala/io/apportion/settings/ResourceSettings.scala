package io.apportion.settings

import org.apache.spark.sql.internal.SQLConf

/** Settings of task slots and executors. */
object ResourceSettings extends SettingRegistry {
  val MinSlots: SettingEntry[Int] = setting(
    "resources.minSlots",
    Category.TaskSlots,
    "Minimum number of task slots. No stage of a query starts before they are registered. A query waits up to " +
      "`resources.timeout` for them and fails if they are not available. 0 (default) disables waiting. With dynamic " +
      "allocation, a query waits for no more slots than `spark.dynamicAllocation.minExecutors` provides. Set it if " +
      "queries start before the cluster has its executors."
  ).int(default = 0, Allowed.AtLeast(0))

  val TargetSlots: SettingEntry[Int] = setting(
    "resources.targetSlots",
    Category.TaskSlots,
    "Target number of task slots. A query that waits for `resources.minSlots` starts at once when it has the target, " +
      "and never waits for more. If `resources.request` is true, Apportion requests this many slots. Set it to " +
      "request a fixed number."
  ).int(default = -1, Allowed.AtLeast(1, or = Some(-1L -> "as many as stages have tasks")))

  val MaxSlots: SettingEntry[Int] = setting(
    "resources.maxSlots",
    Category.TaskSlots,
    "Maximum number of task slots that Apportion requests. Set it to limit the number of executors."
  ).int(default = -1, Allowed.AtLeast(1, or = Some(-1L -> "maxParallelism")))

  val ResourceTimeout: SettingEntry[Long] = setting(
    "resources.timeout",
    Category.TaskSlots,
    "Maximum time that a query waits for `resources.minSlots`, at its start and after it loses executors. The query " +
      "fails after that time. Raise it if executors start slowly."
  ).duration(default = 300, Allowed.AtLeast(0, " seconds"))

  val Stabilization: SettingEntry[Long] = setting(
    "resources.stabilization",
    Category.Internal,
    "Time without a change in the number of task slots after which a waiting query starts with fewer than its target."
  ).duration(default = 10, Allowed.AtLeast(0, " seconds"))

  val Cooldown: SettingEntry[Long] = setting(
    "resources.cooldown",
    Category.Internal,
    "Minimum time between two changes of the number of executors that Apportion requests. It does not apply while a " +
      "query waits for `resources.minSlots`."
  ).duration(default = 30, Allowed.AtLeast(0, " seconds"))

  val Rescaling: SettingEntry[String] = setting(
    "resources.rescaling",
    Category.TaskSlots,
    "Policy that changes the target number of task slots while a query runs. `fixed`: only the query's stages " +
      "change it. `backlog`: the smallest number with which the running tasks finish reading within " +
      "`resources.finishWithin`. `deadline`: the smallest number with which the whole query ends within it. You can " +
      "also name a class that extends `io.apportion.resources.RescalingPolicy` and has a constructor without " +
      "arguments."
  ).text(default = "fixed", Allowed.Text("fixed, backlog, deadline or the name of a class"))

  val FinishWithin: SettingEntry[Long] = setting(
    "resources.finishWithin",
    Category.TaskSlots,
    "Time within which each query must end if `resources.rescaling` is `deadline`, or must read its remaining input if " +
      "it is `backlog`. The hint `FINISH_WITHIN` sets it for a query. Lower it to finish sooner on more executors."
  ).duration(default = 600, Allowed.AtLeast(1, " second"))

  val PollInterval: SettingEntry[Long] = setting(
    "resources.pollInterval",
    Category.Internal,
    "Time between two calls of the policy that `resources.rescaling` selects."
  ).duration(default = 10, Allowed.AtLeast(1, " second"))

  override private[settings] def problems(conf: SQLConf): Seq[String] = {
    val (min, max) = (MinSlots.get(conf), MaxSlots.get(conf))
    if (max == -1 || min <= max) Nil
    else Seq(s"${MinSlots.key} is $min and ${MaxSlots.key} is $max: the first must not be above the second")
  }

  override private[apportion] def rules: Seq[RuleSwitch] = Seq(
    RuleSwitch("AwaitSlots", "Queries start without waiting for task slots, and no executors are requested.")
  )
}
