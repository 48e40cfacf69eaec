package io.apportion.conf

import java.util.{Set => JSet}
import java.util.concurrent.ConcurrentHashMap

import io.apportion.decision.Policy
import io.apportion.resources.RescalingPolicy
import org.apache.commons.text.similarity.LevenshteinDistance
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.command.{ResetCommand, SetCommand}
import org.apache.spark.sql.internal.SQLConf
import org.slf4j.LoggerFactory

/**
 * Refuses what the check of a single setting cannot see: `SET` of an unknown name, and bounds that no power of two satisfies.
 * `SET` is refused itself; values that came another way are refused at the first query, unknown names are named in the log.
 */
case class SettingsCheck(session: SparkSession) extends (LogicalPlan => Unit) {
  import SettingsCheck._

  override def apply(plan: LogicalPlan): Unit = plan match {
    case SetCommand(Some((key, Some(value)))) if key.startsWith(Setting.Prefix) =>
      if (isUnknown(key))
        throw new IllegalArgumentException(s"${unknown(key)} Known settings: ${names.mkString(", ")}.")
      val candidate = SQLConf.get.clone()
      candidate.setConfString(key, value)
      checkBounds(candidate)
      if (key == Settings.Rescaling.key) RescalingPolicy.ofSetting(value, Settings.FinishWithin.get(candidate))
    case _: SetCommand | _: ResetCommand =>
    case _                               =>
      if (Settings.Enabled.get(SQLConf.get)) {
        checkBounds(SQLConf.get)
        for (key <- SQLConf.get.getAllConfs.keys if key.startsWith(Setting.Prefix) && isUnknown(key) && named.add(key))
          log.warn(s"${unknown(key)} It is ignored.")
      }
  }

  private def isUnknown(key: String): Boolean = !names.contains(key)

  private def unknown(key: String): String = {
    val distance = LevenshteinDistance.getDefaultInstance
    val nearest = names.minBy(name => distance(name.toLowerCase, key.toLowerCase))
    s"Unknown setting $key. Did you mean $nearest?"
  }

  private def checkBounds(conf: SQLConf): Unit =
    Policy
      .boundsProblem(Settings.MinParallelism.get(conf), Settings.MaxParallelism.get(conf), Setting.Prefix)
      .orElse(slotsProblem(conf))
      .foreach(problem => throw new IllegalArgumentException(s"$problem."))

  private def slotsProblem(conf: SQLConf): Option[String] = {
    val (min, max) = (Settings.MinSlots.get(conf), Settings.MaxSlots.get(conf))
    Option.when(max != -1 && min > max)(
      s"${Settings.MinSlots.key} is $min and ${Settings.MaxSlots.key} is $max: the first must not be above the second"
    )
  }
}

object SettingsCheck {
  private val log = LoggerFactory.getLogger(getClass.getName.stripSuffix("$"))

  private val names = Settings.all.map(_.key)

  /** Unknown names that the log has. */
  private val named: JSet[String] = ConcurrentHashMap.newKeySet()
}
