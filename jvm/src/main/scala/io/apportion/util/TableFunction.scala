package io.apportion.util

import org.apache.spark.sql.{Row, SparkSession}
import org.apache.spark.sql.catalyst.FunctionIdentifier
import org.apache.spark.sql.catalyst.expressions.{Expression, ExpressionInfo}
import org.apache.spark.sql.catalyst.plans.logical.{LocalRelation, LogicalPlan}
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.types.StructType

/** A SQL table function with rows from Apportion, such as `SELECT * FROM apportion_decisions()`. */
private[apportion] object TableFunction {

  /** The argument of `SparkSessionExtensions.injectTableFunction`. */
  type Description = (FunctionIdentifier, ExpressionInfo, Seq[Expression] => LogicalPlan)

  /** @param schema evaluated when a query calls the function, and not when Spark starts */
  def apply(name: String, usage: String, schema: => StructType)(
      rows: (SparkSession, Seq[Expression]) => Seq[Row]
  ): Description = {
    val info =
      new ExpressionInfo(getClass.getName.stripSuffix("$"), null, name, usage, "", "", "", "", "0.1.0", "", "scala_udf")
    def build(arguments: Seq[Expression]): LogicalPlan =
      LocalRelation.fromExternalRows(DataTypeUtils.toAttributes(schema), rows(SparkSession.active, arguments))
    (FunctionIdentifier(name), info, build)
  }

  def withoutArguments(name: String, usage: String, schema: => StructType)(
      rows: SparkSession => Seq[Row]
  ): Description =
    apply(name, usage, schema) { (session, arguments) =>
      require(arguments.isEmpty, s"$name takes no arguments, but got ${arguments.map(_.sql).mkString(", ")}")
      rows(session)
    }
}
