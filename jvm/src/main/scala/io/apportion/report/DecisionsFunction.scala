package io.apportion.report

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.FunctionIdentifier
import org.apache.spark.sql.catalyst.expressions.{Expression, ExpressionInfo}
import org.apache.spark.sql.catalyst.plans.logical.{LocalRelation, LogicalPlan}
import org.apache.spark.sql.catalyst.types.DataTypeUtils

/** `SELECT * FROM apportion_decisions()`: the session's last decisions, from any client that speaks SQL. */
object DecisionsFunction {
  private val name = "apportion_decisions"
  private val usage = "_FUNC_() - The last decisions of this session on the parallelism of stages, oldest first."

  val description: (FunctionIdentifier, ExpressionInfo, Seq[Expression] => LogicalPlan) =
    (
      FunctionIdentifier(name),
      new ExpressionInfo(
        getClass.getName.stripSuffix("$"),
        null,
        name,
        usage,
        "",
        "",
        "",
        "",
        "0.1.0",
        "",
        "scala_udf"
      ),
      build
    )

  private def build(arguments: Seq[Expression]): LogicalPlan = {
    require(arguments.isEmpty, s"$name takes no arguments, not ${arguments.map(_.sql).mkString(", ")}")
    val rows = DecisionLog.of(SparkSession.active).all.map(_.toRow)
    LocalRelation.fromExternalRows(DataTypeUtils.toAttributes(DecisionRecord.schema), rows)
  }
}
