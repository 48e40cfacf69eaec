package io.apportion.settings

import java.util.{Set => JSet}
import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.sql.apportion.ConfKeys
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.{CommandResult, LocalRelation, LogicalPlan}
import org.apache.spark.sql.execution.command.{ResetCommand, SetCommand}
import org.apache.spark.sql.internal.SQLConf
import org.slf4j.LoggerFactory

/**
 * Checks that Spark's check of a single conf cannot make: unknown names, and bounds that contradict each other.
 *
 * `SET` fails for an unknown name and for a value that makes a contradiction. `spark.conf.set` makes no such check:
 * then the next query fails for a contradiction, and unknown names are logged.
 *
 * @param checkValue throws for a value that an optional feature refuses; gets the key and the conf with the new value
 */
case class SettingsCheck(session: SparkSession, checkValue: (String, SQLConf) => Unit) extends (LogicalPlan => Unit) {
  import SettingsCheck._

  private lazy val names = SettingRegistry.documented.map(_.key)

  override def apply(plan: LogicalPlan): Unit = plan match {
    case SetCommand(Some((key, Some(value)))) if key.startsWith(SettingEntry.Prefix) =>
      if (isUnknown(key))
        throw new IllegalArgumentException(s"${unknown(key)} Known settings: ${names.mkString(", ")}.")
      val candidate = SQLConf.get.clone()
      candidate.setConfString(key, value)
      // Ignore old problems, so that one SET after the other can solve several of them.
      refuse(SettingRegistry.problems(candidate).diff(SettingRegistry.problems(SQLConf.get)))
      checkValue(key, candidate)
    case other if isAboutSettings(other) =>
    case _                               =>
      if (Settings.Enabled.get(SQLConf.get)) {
        refuse(SettingRegistry.problems(SQLConf.get))
        for (key <- ConfKeys.startingWith(SQLConf.get, SettingEntry.Prefix) if isUnknown(key) && logged.add(key))
          log.warn(s"${unknown(key)} It is ignored.")
      }
  }

  /** Whether a plan only shows or changes settings. Such a plan must run, so that users can find and solve problems. */
  private def isAboutSettings(plan: LogicalPlan): Boolean = plan match {
    case _: SetCommand | _: ResetCommand => true
    case result: CommandResult           => isAboutSettings(result.commandLogicalPlan)
    // Dataset.collect analyzes such a plan to decode the rows of another one (ExpressionEncoder.resolveAndBind).
    case relation: LocalRelation => relation.data.isEmpty
    case other                   => other.children.nonEmpty && other.children.forall(isAboutSettings)
  }

  private def isUnknown(key: String): Boolean = !SettingRegistry.all.exists(_.key == key)

  private def unknown(key: String): String = s"Unknown setting $key. Did you mean ${Nearest.to(key, names)}?"

  private def refuse(problems: Seq[String]): Unit =
    problems.headOption.foreach(problem => throw new IllegalArgumentException(s"$problem."))
}

object SettingsCheck {
  private val log = LoggerFactory.getLogger(getClass.getName.stripSuffix("$"))

  /** Unknown names that were logged. */
  private val logged: JSet[String] = ConcurrentHashMap.newKeySet()
}
