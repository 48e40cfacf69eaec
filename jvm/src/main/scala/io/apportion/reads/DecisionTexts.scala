package io.apportion.reads

import io.apportion.groups.{ExchangeGroup, ShuffleLeaf}
import io.apportion.report.DecisionRecord
import io.apportion.sizing.SubpartitionCounts
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanHelper
import org.apache.spark.sql.execution.exchange.ShuffleExchangeLike

/** What a plan can tell of its decisions. */
private[apportion] object DecisionTexts extends AdaptiveSparkPlanHelper {
  private val Mark = TreeNodeTag[String]("apportion.decision")

  /** Notes decisions on what reads the shuffles that they are about. */
  def mark(plan: SparkPlan, decided: Seq[(ExchangeGroup, DecisionRecord)]): Unit = {
    val byStage =
      for ((group, record) <- decided; stage <- group.stages) yield stage.id -> s"${record.operator}: ${record.reason}"
    val texts = byStage.toMap
    plan.foreach {
      case ShuffleLeaf(leaf) => leaf.stage.flatMap(stage => texts.get(stage.id)).foreach(leaf.node.setTagValue(Mark, _))
      case _                 =>
    }
  }

  /** Of a plan that has run, the reasons of its decisions; of one that has not, what its numbers of subpartitions were made of. */
  def of(plan: SparkPlan): Seq[String] = {
    val exchanges = collectWithSubqueries(plan) { case exchange: ShuffleExchangeLike => exchange }.distinct
    val planned =
      for (exchange <- exchanges; why <- SubpartitionCounts.why(exchange))
        yield s"${exchange.nodeName}: ${exchange.outputPartitioning.numPartitions} subpartitions, $why"
    val decided = collectWithSubqueries(plan) { case ShuffleLeaf(leaf) => leaf.node.getTagValue(Mark) }.flatten.distinct
    decided ++ planned
  }
}
