package io.apportion.hints

import io.apportion.decision.{ResourceRequirement, ValueSource}
import io.apportion.groups.{Advisor, ExchangeGroup, GroupPolicy, ShuffleLeaf}
import io.apportion.report.ReportSource
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.exchange.ENSURE_REQUIREMENTS

/** Hints for the tasks that read a group. */
private[apportion] object GroupHints extends Advisor with ReportSource {

  override def advise(group: ExchangeGroup, known: GroupPolicy, session: SparkSession): GroupPolicy =
    known.copy(policy = of(group).over(known.policy))

  override def requirement(group: ExchangeGroup): Option[(ResourceRequirement, ValueSource)] =
    of(group).slots.map(hint => hint.value -> hint.setBy)

  /** Hints of the query block whose operator reads all shuffles come first, then hints of other blocks in the stage. */
  def of(group: ExchangeGroup): BlockHints = {
    def exchanges(leaves: Seq[ShuffleLeaf]) = leaves.map(leaf => leaf.stage.getOrElse(leaf.node))
    val outermost = if (group.consumers.isEmpty) exchanges(group.leaves) else group.consumers
    // An operator of an outer block may read what a block distributes.
    val others = group.inner ++ exchanges(group.leaves.filter(_.shuffle.shuffleOrigin != ENSURE_REQUIREMENTS))
    OperatorBlock.ofEach(outermost +: others.map(Seq(_))).map(_.hints).foldLeft(BlockHints.none)(_ orElse _)
  }
}
