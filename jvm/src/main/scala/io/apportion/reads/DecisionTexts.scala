package io.apportion.reads

import io.apportion.decision.Sentence
import io.apportion.groups.ShuffleLeaf
import io.apportion.report.{ReportSource, ReportedDecision}
import io.apportion.shufflewrites.AdaptiveWrites
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanHelper
import org.apache.spark.sql.execution.exchange.ShuffleExchangeLike

/** Texts about the decisions of a plan, for `EXPLAIN`. */
private[apportion] object DecisionTexts extends AdaptiveSparkPlanHelper with ReportSource {
  private val Mark = TreeNodeTag[String]("apportion.decision")

  /** Tags the leaves that read shuffles with the reasons of their decisions. */
  override def decided(session: SparkSession, stage: SparkPlan, decisions: Seq[ReportedDecision]): Unit = {
    val byStage =
      for (decision <- decisions; group <- decision.group.toSeq; read <- group.stages)
        yield read.id -> s"${decision.record.operator}: ${decision.record.reason}"
    val texts = byStage.toMap
    if (texts.nonEmpty) stage.foreach {
      case ShuffleLeaf(leaf) => leaf.stage.flatMap(read => texts.get(read.id)).foreach(leaf.node.setTagValue(Mark, _))
      case _                 =>
    }
  }

  /**
   * Reasons of the decisions in a plan, then the reasons for the numbers of shuffle partitions that Apportion chose.
   * A plan has decisions only after it has run.
   */
  def of(plan: SparkPlan): Seq[String] = {
    val exchanges = collectWithSubqueries(plan) { case exchange: ShuffleExchangeLike => exchange }.distinct
    val planned =
      for (exchange <- exchanges; why <- AdaptiveWrites.why(exchange))
        yield s"${exchange.nodeName}: ${Sentence.count(exchange.outputPartitioning.numPartitions, "shuffle partition")}, ${why.text}"
    val decided = collectWithSubqueries(plan) { case ShuffleLeaf(leaf) => leaf.node.getTagValue(Mark) }.flatten.distinct
    decided ++ planned
  }
}
