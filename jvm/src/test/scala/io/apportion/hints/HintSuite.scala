package io.apportion.hints

import io.apportion.SparkSuite
import io.apportion.report.DecisionRecord
import org.apache.spark.sql.catalyst.plans.QueryPlan

/** Says what hints have made of a query. */
trait HintSuite extends SparkSuite {

  /** `operator: tasks` of all stages whose layout is decided, in no order; not of scans. */
  protected def stages(decisions: Seq[DecisionRecord]): Seq[String] =
    decisions
      .filterNot(r => r.kind == "unchanged" || r.layout == "files")
      .map(record => s"${record.operator}: ${record.tasks}")
      .sorted

  /**
   * The plan as text without what differs between any two plans of one query, and without the numbers of subpartitions that
   * the query does not give.
   */
  protected def shape(plan: QueryPlan[_]): String =
    plan.treeString.replaceAll(
      "#\\d+L?|plan_id=\\d+|(?<=subquery#)\\d+|(?<=[ (])\\d+(?=\\), (ENSURE_|REPARTITION_BY_COL|REBALANCE_))|rand\\(-?\\d+\\)",
      ""
    )
}
