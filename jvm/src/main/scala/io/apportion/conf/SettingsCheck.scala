package io.apportion.conf

import io.apportion.decision.Policy
import io.apportion.resources.RescalingPolicy
import org.apache.commons.text.similarity.LevenshteinDistance
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.command.{ResetCommand, SetCommand}
import org.apache.spark.sql.internal.SQLConf

/**
 * Refuses what the check of a single setting cannot see: `SET` of an unknown name, and bounds that no power of two satisfies.
 * `SET` is refused itself; values that came another way are refused at the first query.
 */
case class SettingsCheck(session: SparkSession) extends (LogicalPlan => Unit) {

  override def apply(plan: LogicalPlan): Unit = plan match {
    case SetCommand(Some((key, Some(value)))) if key.startsWith(Setting.Prefix) =>
      checkName(key)
      val candidate = SQLConf.get.clone()
      candidate.setConfString(key, value)
      checkBounds(candidate)
      if (key == Settings.Rescaling.key) RescalingPolicy.ofSetting(value, Settings.FinishWithin.get(candidate))
    case _: SetCommand | _: ResetCommand =>
    case _                               => if (Settings.Enabled.get(SQLConf.get)) checkBounds(SQLConf.get)
  }

  private def checkName(key: String): Unit =
    if (!Settings.all.exists(_.key == key)) {
      val distance = LevenshteinDistance.getDefaultInstance
      val nearest = Settings.all.map(_.key).minBy(known => distance(known.toLowerCase, key.toLowerCase))
      throw new IllegalArgumentException(
        s"Unknown setting $key. Did you mean $nearest? Known settings: ${Settings.all.map(_.key).mkString(", ")}."
      )
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
