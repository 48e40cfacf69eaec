package io.apportion.settings

import java.util.{Set => JSet}
import java.util.concurrent.ConcurrentHashMap

import io.apportion.decision.Policy
import org.apache.spark.sql.apportion.ConfKeys
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.{CommandResult, LogicalPlan}
import org.apache.spark.sql.execution.command.{ResetCommand, SetCommand}
import org.apache.spark.sql.internal.SQLConf
import org.slf4j.LoggerFactory

/**
 * Refuses what the check of a single setting cannot see: `SET` of an unknown name, and bounds that contradict each other. A `SET`
 * that makes a contradiction is refused. Values that were set otherwise are refused at the next query, and unknown names are logged.
 *
 * @param checkValue throws for a value that an optional feature refuses; gets the key and the conf with the new value
 */
case class SettingsCheck(session: SparkSession, checkValue: (String, SQLConf) => Unit) extends (LogicalPlan => Unit) {
  import SettingsCheck._

  override def apply(plan: LogicalPlan): Unit = plan match {
    case SetCommand(Some((key, Some(value)))) if key.startsWith(SettingEntry.Prefix) =>
      if (isUnknown(key))
        throw new IllegalArgumentException(s"${unknown(key)} Known settings: ${names.mkString(", ")}.")
      val candidate = SQLConf.get.clone()
      candidate.setConfString(key, value)
      // Of two problems, SET has to be able to solve one after the other.
      refuse(problems(candidate).diff(problems(SQLConf.get)))
      checkValue(key, candidate)
    case other if isAboutSettings(other) =>
    case _                               =>
      if (Settings.Enabled.get(SQLConf.get)) {
        refuse(problems(SQLConf.get))
        for (key <- ConfKeys.startingWith(SQLConf.get, SettingEntry.Prefix) if isUnknown(key) && named.add(key))
          log.warn(s"${unknown(key)} It is ignored.")
      }
  }

  /** Whether a plan only shows or changes settings, so that it can show and solve a problem of theirs. */
  private def isAboutSettings(plan: LogicalPlan): Boolean = plan match {
    case _: SetCommand | _: ResetCommand => true
    case result: CommandResult           => isAboutSettings(result.commandLogicalPlan)
    case other                           => other.children.nonEmpty && other.children.forall(isAboutSettings)
  }

  private def isUnknown(key: String): Boolean = !names.contains(key)

  private def unknown(key: String): String = s"Unknown setting $key. Did you mean ${Nearest.to(key, names)}?"

  private def refuse(problems: Seq[String]): Unit =
    problems.headOption.foreach(problem => throw new IllegalArgumentException(s"$problem."))

  private def problems(conf: SQLConf): Seq[String] =
    boundsProblem(conf).toSeq ++ slotsProblem(conf)

  private def boundsProblem(conf: SQLConf): Option[String] =
    Policy.boundsProblem(
      Settings.MinParallelism.get(conf),
      Settings.MaxParallelism.get(conf),
      SessionPolicy.isPowerOfTwo(conf),
      SettingEntry.Prefix
    )

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
