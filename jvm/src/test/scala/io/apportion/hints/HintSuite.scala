package io.apportion.hints

import io.apportion.SparkSuite
import io.apportion.report.DecisionRecord
import org.apache.spark.sql.catalyst.plans.QueryPlan

/** Says what hints have made of a query. */
trait HintSuite extends SparkSuite {

  /** `operator: tasks` of all stages whose layout is decided, in no order. */
  protected def stages(decisions: Seq[DecisionRecord]): Seq[String] =
    decisions.filter(_.kind != "unchanged").map(record => s"${record.operator}: ${record.tasks}").sorted

  /**
   * The plan as text without what differs between any two plans of one query, and without the numbers of subpartitions that
   * Spark's requirements have.
   */
  protected def shape(plan: QueryPlan[_]): String =
    plan.treeString.replaceAll(
      "#\\d+L?|plan_id=\\d+|(?<=subquery#)\\d+|(?<=, )\\d+(?=\\), ENSURE_REQ)|rand\\(-?\\d+\\)",
      ""
    )
}
