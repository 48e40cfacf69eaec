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

  override def apply(plan: LogicalPlan): Unit = plan match {
    case SetCommand(Some((key, Some(value)))) if key.startsWith(Setting.Prefix) =>
      unknown(key).foreach(problem => throw new IllegalArgumentException(s"$problem Known settings: $known."))
      val candidate = SQLConf.get.clone()
      candidate.setConfString(key, value)
      checkBounds(candidate)
      if (key == Settings.Rescaling.key) RescalingPolicy.ofSetting(value, Settings.FinishWithin.get(candidate))
    case _: SetCommand | _: ResetCommand =>
    case _                               =>
      if (Settings.Enabled.get(SQLConf.get)) {
        checkBounds(SQLConf.get)
        SQLConf.get.getAllConfs.keys.filter(_.startsWith(Setting.Prefix)).foreach(warnIfUnknown)
      }
  }

  private def warnIfUnknown(key: String): Unit =
    for (problem <- unknown(key) if SettingsCheck.named.add(key)) SettingsCheck.log.warn(s"$problem It is ignored.")

  private def unknown(key: String): Option[String] =
    Option.when(!Settings.all.exists(_.key == key)) {
      val distance = LevenshteinDistance.getDefaultInstance
      val nearest = Settings.all.map(_.key).minBy(known => distance(known.toLowerCase, key.toLowerCase))
      s"Unknown setting $key. Did you mean $nearest?"
    }

  private def known: String = Settings.all.map(_.key).mkString(", ")

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

  /** Unknown names that the log has. */
  private val named: JSet[String] = ConcurrentHashMap.newKeySet()
}
