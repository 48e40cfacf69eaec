package io.apportion.safety

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.expressions.DynamicPruningExpression
import org.apache.spark.sql.catalyst.expressions.Literal.TrueLiteral
import org.apache.spark.sql.execution.{FileSourceScanExec, RangeExec, SparkPlan}
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanHelper
import org.apache.spark.sql.execution.exchange.{ReusedExchangeExec, ShuffleExchangeLike}
import org.apache.spark.sql.execution.joins.BroadcastHashJoinExec

/** What can get worse in the plan of a query that has run. */
final case class PlanFacts(
    exchanges: Int,
    reused: Int,
    broadcastJoins: Int,
    pruningFilters: Int,
    scans: Int,
    files: Long
) {

  /** What is worse than in another plan of the same query. */
  def worseThan(other: PlanFacts): Seq[String] = Seq(
    "exchanges" -> (exchanges > other.exchanges),
    "reused exchanges" -> (reused < other.reused && exchanges >= other.exchanges),
    "broadcast joins" -> (broadcastJoins < other.broadcastJoins),
    "dynamic pruning filters" -> (pruningFilters < other.pruningFilters),
    "scans" -> (scans > other.scans),
    "files" -> (files > other.files)
  ).collect { case (name, true) => name }
}

object PlanFacts extends AdaptiveSparkPlanHelper {

  def of(query: DataFrame): PlanFacts = {
    val plan = query.queryExecution.executedPlan
    def count(found: PartialFunction[SparkPlan, Any]): Int = collectWithSubqueries(plan)(found).size
    val files = collectWithSubqueries(plan) { case scan: FileSourceScanExec => scan }
    PlanFacts(
      exchanges = count { case exchange: ShuffleExchangeLike => exchange },
      reused = count { case reused: ReusedExchangeExec => reused },
      broadcastJoins = count { case join: BroadcastHashJoinExec => join },
      pruningFilters = files.flatMap(_.partitionFilters).count {
        case DynamicPruningExpression(TrueLiteral) => false
        case _: DynamicPruningExpression           => true
        case _                                     => false
      },
      scans = files.size + count { case range: RangeExec => range },
      files = files.map(_.metrics("numFiles").value).sum
    )
  }
}
