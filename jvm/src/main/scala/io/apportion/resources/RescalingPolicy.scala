package io.apportion.resources

import io.apportion.decision.ResourceRequirement
import io.apportion.settings.ResourceSettings
import org.apache.spark.sql.internal.SQLConf

/**
 * The state of a running query, as input of a rescaling policy.
 *
 * @param requirement        task slots that the query declares now
 * @param slots              task slots of the registered executors
 * @param waitingBytes       bytes that unfinished tasks still have to read
 * @param bytesPerSlotSecond bytes that a slot has read per second so far; 0 if no task has finished
 * @param runningMillis      milliseconds since the query's first job started
 */
final case class QueryLoad(
    requirement: ResourceRequirement,
    slots: Int,
    waitingBytes: Long,
    bytesPerSlotSecond: Double,
    runningMillis: Long
)

/**
 * Sets the target number of task slots of a running query. Users can implement it; see the setting
 * `resources.rescaling`.
 */
trait RescalingPolicy {

  /** The new target. Apportion limits it to the minimum and maximum of the requirement. */
  def target(load: QueryLoad): Int
}

object RescalingPolicy {

  /** The value of the setting that follows the deadline of each query. */
  val Deadline = "deadline"

  /** Throws if `key` is `resources.rescaling` and its value does not name a policy. */
  def check(key: String, conf: SQLConf): Unit =
    if (key == ResourceSettings.Rescaling.key)
      ofSetting(ResourceSettings.Rescaling.get(conf), ResourceSettings.FinishWithin.get(conf))

  /** The policy for a value of the setting; `None` for `fixed`, and for `deadline`, which is no policy of load. */
  def ofSetting(value: String, finishWithinMillis: Long): Option[RescalingPolicy] = value match {
    case "fixed" | Deadline => None
    case "backlog"          => Some(Backlog(finishWithinMillis))
    case className          => Some(named(className))
  }

  private def named(className: String): RescalingPolicy = {
    def refused(why: String, cause: Throwable = null) = new IllegalArgumentException(
      s"resources.rescaling is $className: $why. Allowed: fixed, backlog, deadline, or the name of a class that extends " +
        s"${classOf[RescalingPolicy].getName} and has a constructor without arguments",
      cause
    )
    try
      Thread.currentThread.getContextClassLoader.loadClass(className).getDeclaredConstructor().newInstance() match {
        case policy: RescalingPolicy => policy
        case _                       => throw refused(s"it does not extend ${classOf[RescalingPolicy].getSimpleName}")
      }
    catch {
      case missing: ClassNotFoundException => throw refused("there is no such class", missing)
      case failure @ (_: ReflectiveOperationException | _: LinkageError) =>
        throw refused("it cannot be instantiated", failure)
    }
  }
}

/**
 * As many slots as read the waiting bytes within `finishWithinMillis` at the measured speed. Keeps the declared target
 * until a task has finished.
 */
final case class Backlog(finishWithinMillis: Long) extends RescalingPolicy {
  require(finishWithinMillis > 0, s"finishWithin is $finishWithinMillis ms; it must be 1 ms or more")

  override def target(load: QueryLoad): Int =
    if (load.bytesPerSlotSecond <= 0) load.requirement.target
    else {
      val slotSeconds = load.waitingBytes / load.bytesPerSlotSecond
      math.ceil(slotSeconds * 1000 / finishWithinMillis).min(Int.MaxValue.toDouble).toInt
    }
}
