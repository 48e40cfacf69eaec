package io.apportion.hints

import io.apportion.decision.{ResourceRequirement, ValueSource}
import io.apportion.groups.{Advisor, ExchangeGroup, GroupPolicy}
import io.apportion.report.ReportSource
import org.apache.spark.sql.SparkSession

/** Hints for the tasks that read a group. */
private[apportion] object GroupHints extends Advisor with ReportSource {

  override def advise(group: ExchangeGroup, known: GroupPolicy, session: SparkSession): GroupPolicy =
    known.copy(policy = of(group).over(known.policy))

  override def requirement(group: ExchangeGroup): Option[(ResourceRequirement, ValueSource)] =
    of(group).slots.map(hint => hint.value -> hint.setBy)

  /** Hints of the query block whose operator reads all shuffles come first, then hints of other blocks in the stage. */
  def of(group: ExchangeGroup): BlockHints = {
    val outermost =
      if (group.consumers.isEmpty) group.leaves.map(leaf => leaf.stage.getOrElse(leaf.node)) else group.consumers
    OperatorBlock.ofEach(outermost +: group.inner.map(Seq(_))).map(_.hints).foldLeft(BlockHints.none)(_ orElse _)
  }
}
