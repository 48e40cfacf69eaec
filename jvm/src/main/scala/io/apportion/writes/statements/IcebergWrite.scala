package io.apportion.writes.statements

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.analysis.NamedRelation
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, ReplaceData, V2WriteCommand, WriteDelta}
import org.apache.spark.sql.connector.catalog.Table
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation

/**
 * Finds statements that write an Iceberg table (Iceberg 1.4 to 1.12). Spark runs the query of such a statement as an
 * adaptive plan of its own, below the operator that writes (`InsertAdaptiveSparkPlan`).
 */
private[writes] object IcebergWrite {
  private val Package = "org.apache.iceberg."

  private val FormatKey = "write.format.default"

  /** Statements that write positions of deleted rows (`WriteDelta`) are left to Iceberg. */
  def of(plan: SparkPlan, query: LogicalPlan): Option[TableWrite] = query match {
    case write: V2WriteCommand if !write.isInstanceOf[WriteDelta] && QueryRoot.sameColumns(write.query, plan) =>
      tableOf(write) match {
        case relation: DataSourceV2Relation if relation.table.getClass.getName.startsWith(Package) =>
          Some(ofTable(plan, relation.name, relation.table))
        case _ => None
      }
    case _ => None
  }

  /** The table as queries see it. MERGE, UPDATE and DELETE write to a wrapper of it (`RowLevelOperationTable`). */
  private def tableOf(write: V2WriteCommand): NamedRelation = write match {
    case replace: ReplaceData => replace.originalTable
    case other                => other.table
  }

  private def ofTable(plan: SparkPlan, name: String, table: Table): TableWrite = {
    val properties = table.properties.asScala.toMap
    val format = s"iceberg/${properties.getOrElse(FormatKey, "parquet")}"
    new TableWrite(plan, WrittenTable(name, properties), format, TableWrite.columnarRatio)
  }
}
