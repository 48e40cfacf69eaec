package io.apportion.util

import io.apportion.decision.ResourceRequirement
import org.apache.spark.sql.Row
import org.apache.spark.sql.types._

/** Parts of the schemas of table functions. */
private[apportion] object TableColumns {

  /** @param comment meaning of the column, for the documentation */
  def column(name: String, dataType: DataType, comment: String): StructField =
    StructField(name, dataType).withComment(comment)

  /** The type of a column with [[requirement]]s. */
  val Requirement: StructType = StructType(Seq("min", "target", "max").map(StructField(_, IntegerType)))

  def requirement(need: ResourceRequirement): Row = Row(need.min, need.target, need.max)
}
