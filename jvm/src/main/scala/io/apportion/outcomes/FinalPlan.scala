package io.apportion.outcomes

import scala.collection.immutable.ListMap
import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.{DynamicPruningExpression, Literal}
import org.apache.spark.sql.execution.{FileSourceScanExec, SparkPlan}
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanExec, QueryStageExec}
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec

/** The plan of a query after it ran. */
private[apportion] object FinalPlan {

  /**
   * Operators of a plan and of its subqueries. A reused exchange or subquery is one operator. The operators below it are
   * there only where they ran.
   *
   *  - `files`: number of files read; 0 unless the operator scans files
   *  - `partitions`: number of table partitions read; 0 unless the table is partitioned
   *  - `dynamicFilters`: number of partition filters with values from the other side of a join
   */
  def operators(plan: SparkPlan): Seq[ListMap[String, Any]] = {
    // Two filters can share a subquery.
    val seen = mutable.Set.empty[Int]
    def visit(plan: SparkPlan): Seq[ListMap[String, Any]] = plan match {
      case adaptive: AdaptiveSparkPlanExec => visit(adaptive.executedPlan)
      // The ids of query stages are a separate numbering.
      case stage: QueryStageExec   => visit(stage.plan)
      case _ if !seen.add(plan.id) => Nil
      case _                       =>
        val name = plan.getClass.getSimpleName
        val below = if (name.startsWith("Reused")) Nil else plan.children ++ plan.subqueries
        val partitions = if (name.contains("Scan")) metric(plan, "numPartitions") else 0L
        val operator = ListMap[String, Any](
          "operator" -> name,
          "files" -> metric(plan, "numFiles"),
          "partitions" -> partitions,
          "dynamicFilters" -> dynamicFilters(plan)
        )
        operator +: below.flatMap(visit)
    }
    visit(plan)
  }

  private def metric(plan: SparkPlan, name: String): Long = plan.metrics.get(name).fold(0L)(_.value)

  private def dynamicFilters(plan: SparkPlan): Int = {
    val filters = plan match {
      case scan: FileSourceScanExec => scan.partitionFilters
      case scan: BatchScanExec      => scan.runtimeFilters
      case _                        => Nil
    }
    filters.count {
      // PlanAdaptiveDynamicPruningFilters inserts the literal true if pruning would not pay off.
      case DynamicPruningExpression(_: Literal) => false
      case DynamicPruningExpression(_)          => true
      case _                                    => false
    }
  }
}
