package io.apportion.aqe

import io.apportion.reads.DecisionTexts
import org.apache.spark.sql.ExtendedExplainGenerator
import org.apache.spark.sql.execution.SparkPlan

/**
 * Adds decisions to `EXPLAIN`, with `spark.sql.extendedExplainProviders=io.apportion.aqe.ExplainDecisions`. Spark 3.5
 * does not have such providers.
 */
class ExplainDecisions extends ExtendedExplainGenerator {
  override def title: String = "Apportion"

  override def generateExtendedInfo(plan: SparkPlan): String = DecisionTexts.of(plan).mkString("\n")
}
