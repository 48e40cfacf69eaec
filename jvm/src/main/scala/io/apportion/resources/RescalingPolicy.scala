package io.apportion.resources

import io.apportion.decision.ResourceRequirement
import io.apportion.settings.Settings
import org.apache.spark.sql.internal.SQLConf

/**
 * What a rescaling policy knows of a query that runs.
 *
 * @param requirement        what it declares now
 * @param slots              that are there
 * @param waitingBytes       bytes that tasks of these stages have still to read
 * @param bytesPerSlotSecond that a slot has read in a second so far; 0 if no task has finished
 * @param runningMillis      since the query's first stage started
 */
final case class QueryLoad(
    requirement: ResourceRequirement,
    slots: Int,
    waitingBytes: Long,
    bytesPerSlotSecond: Double,
    runningMillis: Long
)

/** Says, every time it is asked, how many slots a query should have; what it says is kept within the requirement's bounds. */
trait RescalingPolicy {
  def target(load: QueryLoad): Int
}

object RescalingPolicy {

  /** Throws for a value of `resources.rescaling` that makes no policy. */
  def check(key: String, conf: SQLConf): Unit =
    if (key == Settings.Rescaling.key) ofSetting(Settings.Rescaling.get(conf), Settings.FinishWithin.get(conf))

  /** What the setting says; None for `fixed`, which changes nothing. */
  def ofSetting(value: String, finishWithinMillis: Long): Option[RescalingPolicy] = value match {
    case "fixed"   => None
    case "backlog" => Some(Backlog(finishWithinMillis))
    case className => Some(named(className))
  }

  private def named(className: String): RescalingPolicy = {
    def refused(why: String, cause: Throwable = null) = new IllegalArgumentException(
      s"resources.rescaling is $className: $why. Allowed: fixed, backlog, or the name of a class that extends " +
        s"${classOf[RescalingPolicy].getName} and has a constructor without arguments",
      cause
    )
    val made =
      try Thread.currentThread.getContextClassLoader.loadClass(className).getDeclaredConstructor().newInstance()
      catch {
        case missing: ClassNotFoundException => throw refused("there is no such class", missing)
        case failure @ (_: ReflectiveOperationException | _: LinkageError) =>
          throw refused("it cannot be made", failure)
      }
    made match {
      case policy: RescalingPolicy => policy
      case _                       => throw refused("it is no such policy")
    }
  }
}

/** As many as read the bytes that wait within so many milliseconds, at the speed that was seen; what was declared until one was. */
final case class Backlog(finishWithinMillis: Long) extends RescalingPolicy {
  require(finishWithinMillis > 0, s"finishWithin is $finishWithinMillis ms; it must be 1 or more")

  override def target(load: QueryLoad): Int =
    if (load.bytesPerSlotSecond <= 0) load.requirement.target
    else {
      val slotSeconds = load.waitingBytes / load.bytesPerSlotSecond
      math.ceil(slotSeconds * 1000 / finishWithinMillis).min(Int.MaxValue.toDouble).toInt
    }
}
