package io.apportion.conf

import io.apportion.decision.Policy
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
      .foreach(problem => throw new IllegalArgumentException(s"$problem."))
}
