package io.apportion.resources

import java.util.{Set => JSet}
import java.util.concurrent.ConcurrentHashMap

import scala.util.control.NonFatal

import io.apportion.decision.ResourceRequirement
import io.apportion.settings.{SessionPolicy, Settings}
import io.apportion.settings.ResourceSettings._
import org.apache.spark.SparkContext
import org.apache.spark.apportion.{Cluster, ExecutorResources}
import org.apache.spark.sql.internal.SQLConf
import org.slf4j.LoggerFactory

/**
 * The settings of a session for the task slots of its queries.
 *
 * @param requested     `resources.minSlots` as the user set it; `need.min` is this number within all bounds
 * @param asks          whether Apportion requests executors
 * @param followsStages whether each decision sets the target to the number of tasks of the query's stages
 * @param rescaling     the policy that changes the target while the query runs, if there is one
 * @param finishWithin  milliseconds within which the query must end, if it has a deadline
 * @param pollMillis    milliseconds between two calls of the policy
 */
private[apportion] final class SlotSettings(
    val requested: Int,
    val need: ResourceRequirement,
    val timeouts: SlotTimeouts,
    val asks: Boolean,
    val followsStages: Boolean,
    val rescaling: Option[RescalingPolicy],
    val finishWithin: Option[Long],
    pollMillis: Long
) {
  private var polledAt = Option.empty[Long]

  /** Whether the query waits for slots, requests executors or has a policy. Other queries are not tracked. */
  def needsCoordination: Boolean = followsWork || need.min > 0 || rescaling.isDefined

  /** Whether the target follows the work of the query, so that Apportion must know it. */
  def followsWork: Boolean = asks || finishWithin.isDefined

  /** Whether to call the policy now. Returns true at most once in `pollMillis`. */
  def isDue(now: Long): Boolean = {
    val due = polledAt.forall(now >= _ + pollMillis)
    if (due) polledAt = Some(now)
    due
  }
}

private[apportion] object SlotSettings {
  private val log = LoggerFactory.getLogger(getClass.getName.stripSuffix("$"))

  /** Values of `resources.rescaling` that were refused and logged. */
  private val refused: JSet[String] = ConcurrentHashMap.newKeySet()

  /** Whether the settings alone rule out coordination. Does not look at executors, because every query calls it. */
  def neverNeedCoordination(conf: SQLConf): Boolean =
    MinSlots.get(conf) == 0 && Rescaling.get(conf) == "fixed" && !Settings.RequestExecutors.get(conf)

  /** @param hinted milliseconds of a hint FINISH_WITHIN, if the query has one */
  def of(conf: SQLConf, sparkContext: SparkContext, hinted: Option[Long] = None): SlotSettings = {
    val isReactive = new SessionPolicy(conf, sparkContext).reactive
    val requested = MinSlots.get(conf)
    val wanted = Some(MaxSlots.get(conf)).filter(_ != -1)
    val (dynamicMin, dynamicMax) = ExecutorResources.dynamicBounds(sparkContext).getOrElse((Int.MaxValue, Int.MaxValue))
    val max = wanted.getOrElse(Settings.MaxParallelism.get(conf).max(requested)).min(dynamicMax).max(1)
    val min = requested.min(dynamicMin).min(max)
    val set = Some(TargetSlots.get(conf)).filter(_ != -1)
    val target = set.getOrElse(if (isReactive) max else sparkContext.defaultParallelism)
    val isDeadline = Rescaling.get(conf) == RescalingPolicy.Deadline
    val finishWithin = hinted.orElse(Option.when(isDeadline)(FinishWithin.get(conf)))
    val rescaling = if (finishWithin.isDefined) None else rescalingPolicy(conf)
    new SlotSettings(
      requested = requested,
      need = ResourceRequirement(min, min, max).aimingAt(target),
      timeouts = SlotTimeouts(
        timeout = ResourceTimeout.get(conf),
        // A query that does not wait for a minimum does not wait for its target. A local master never gets more slots.
        stabilization = if (min == 0 || sparkContext.isLocal) 0 else Stabilization.get(conf),
        // Dynamic allocation has timeouts of its own.
        cooldown = if (Cluster.isDynamic(sparkContext)) 0 else Cooldown.get(conf)
      ),
      asks = Settings.RequestExecutors.get(conf) && !isReactive && Cluster.canBeAsked(sparkContext),
      // A stage must not override the policy.
      followsStages = set.isEmpty && !isReactive && rescaling.isEmpty && finishWithin.isEmpty,
      rescaling,
      finishWithin,
      PollInterval.get(conf)
    )
  }

  /**
   * The policy of the session. `spark.conf.set` accepts values that `SET` refuses: an invalid value counts as `fixed`,
   * and the other settings still apply.
   */
  private def rescalingPolicy(conf: SQLConf): Option[RescalingPolicy] = {
    val value = Rescaling.get(conf)
    try RescalingPolicy.ofSetting(value, FinishWithin.get(conf))
    catch {
      case NonFatal(failure) =>
        if (refused.add(value))
          log.warn(s"${Rescaling.key} is $value, which is invalid. Apportion uses fixed.", failure)
        None
    }
  }
}
