package io.apportion.aqe

import io.apportion.report.DecisionRecord
import org.apache.spark.sql.ExtendedExplainGenerator
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanHelper
import org.apache.spark.sql.execution.exchange.ShuffleExchangeLike

/**
 * What `EXPLAIN` tells of a plan: of one that has run, the reasons of its decisions; of one that has not, what the numbers of
 * subpartitions were made of. With `spark.sql.extendedExplainProviders=io.apportion.aqe.ExplainDecisions`.
 */
class ExplainDecisions extends ExtendedExplainGenerator with AdaptiveSparkPlanHelper {
  import ExplainDecisions._

  override def title: String = "Apportion"

  override def generateExtendedInfo(plan: SparkPlan): String = {
    val exchanges = collectWithSubqueries(plan) { case exchange: ShuffleExchangeLike => exchange }.distinct
    val planned =
      for (exchange <- exchanges; why <- SubpartitionCounts.why(exchange))
        yield s"${exchange.nodeName}: ${exchange.outputPartitioning.numPartitions} subpartitions, $why"
    val decided = collectWithSubqueries(plan) { case ShuffleLeaf(leaf) => leaf.node.getTagValue(Mark) }.flatten.distinct
    (decided ++ planned).mkString("\n")
  }
}

private[aqe] object ExplainDecisions {
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
}
