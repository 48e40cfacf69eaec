package io.apportion.report

import io.apportion.resources.{Coordination, ResourceHistory}
import org.apache.spark.sql.{Row, SparkSession}
import org.apache.spark.sql.catalyst.FunctionIdentifier
import org.apache.spark.sql.catalyst.expressions.{Expression, ExpressionInfo}
import org.apache.spark.sql.catalyst.plans.logical.{LocalRelation, LogicalPlan}
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.types.StructType

/** Tables of what Apportion knows, for any client that speaks SQL: `SELECT * FROM apportion_decisions()`. */
object TableFunctions {
  type Description = (FunctionIdentifier, ExpressionInfo, Seq[Expression] => LogicalPlan)

  val decisions: Description = function(
    "apportion_decisions",
    "_FUNC_() - The last decisions of this session on the parallelism of stages, oldest first.",
    DecisionRecord.schema
  ) { (session, arguments) =>
    refuseAny("apportion_decisions", arguments)
    DecisionLog.of(session).all.map(_.toRow)
  }

  val resources: Description = function(
    "apportion_resources",
    "_FUNC_() - The last changes of this application's slots and of what its queries need of them, oldest first.",
    ResourceHistory.schema
  ) { (session, arguments) =>
    refuseAny("apportion_resources", arguments)
    Coordination.changesOf(session.sparkContext).map(_.toRow)
  }

  val slots: Description = function(
    "apportion_slots",
    "_FUNC_(query[, slots]) - The slots that each stage of a query would need, which is planned for that and does not run; and " +
      "how so many slots, or those that are there, would be dealt to stages that can run at once.",
    PlannedSlots.schema
  )(PlannedSlots.rows)

  private def refuseAny(name: String, arguments: Seq[Expression]): Unit =
    require(arguments.isEmpty, s"$name takes no arguments, not ${arguments.map(_.sql).mkString(", ")}")

  private def function(name: String, usage: String, schema: StructType)(
      rows: (SparkSession, Seq[Expression]) => Seq[Row]
  ): Description = {
    val info =
      new ExpressionInfo(getClass.getName.stripSuffix("$"), null, name, usage, "", "", "", "", "0.1.0", "", "scala_udf")
    def build(arguments: Seq[Expression]): LogicalPlan =
      LocalRelation.fromExternalRows(DataTypeUtils.toAttributes(schema), rows(SparkSession.active, arguments))
    (FunctionIdentifier(name), info, build)
  }
}
