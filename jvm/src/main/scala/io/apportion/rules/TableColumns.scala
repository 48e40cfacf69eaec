package io.apportion.rules

import io.apportion.decision.ResourceRequirement
import org.apache.spark.sql.Row
import org.apache.spark.sql.types._

/** What columns of table functions are made of. */
private[apportion] object TableColumns {

  def column(name: String, dataType: DataType, holds: String): StructField =
    StructField(name, dataType).withComment(holds)

  /** The type of a column of [[requirement]]s. */
  val Requirement: StructType = StructType(Seq("min", "target", "max").map(StructField(_, IntegerType)))

  def requirement(need: ResourceRequirement): Row = Row(need.min, need.target, need.max)
}
