package org.apache.spark.sql.execution

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec

/** An aggregate that declares no distribution, in a package of Spark but not in its jar, as other engines have them. */
case class UndeclaredAggregateExec(aggregate: BaseAggregateExec, child: SparkPlan) extends UnaryExecNode {
  override def output: Seq[Attribute] = aggregate.output
  override protected def doExecute(): RDD[InternalRow] = aggregate.withNewChildren(Seq(child)).execute()
  override protected def withNewChildInternal(newChild: SparkPlan): SparkPlan = copy(child = newChild)
}
