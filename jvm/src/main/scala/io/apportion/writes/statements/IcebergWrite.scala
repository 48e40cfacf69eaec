package io.apportion.writes.statements

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, V2WriteCommand, WriteDelta}
import org.apache.spark.sql.connector.catalog.Table
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.datasources.FileFormat
import org.apache.spark.sql.execution.datasources.orc.OrcFileFormat
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation

/**
 * Finds statements that write an Iceberg table (Iceberg 1.4 to 1.12). Spark runs the query of such a statement as an
 * adaptive plan of its own, below the operator that writes (`InsertAdaptiveSparkPlan`).
 */
private[writes] object IcebergWrite {
  private val Package = "org.apache.iceberg."

  private val FormatKey = "write.format.default"

  /** Spark's formats for samples, with the codec that Iceberg uses unless a property sets one (`TableProperties`). */
  private val formats: Map[String, (FileFormat, String)] =
    Map("parquet" -> ((new ParquetFileFormat, "zstd")), "orc" -> ((new OrcFileFormat, "zlib")))

  /** Statements that write positions of deleted rows (`WriteDelta`) are left to Iceberg. */
  def of(plan: SparkPlan, query: LogicalPlan): Option[TableWrite] = query match {
    case write: V2WriteCommand if !write.isInstanceOf[WriteDelta] && QueryRoot.sameColumns(write.query, plan) =>
      write.table match {
        case relation: DataSourceV2Relation =>
          tableIn(relation.table).map(table => ofTable(plan, relation.name, table))
        case _ => None
      }
    case _ => None
  }

  /** The table of Iceberg. MERGE, UPDATE and DELETE have it in a table of Spark (`RowLevelOperationTable`). */
  private def tableIn(table: Table): Option[Table] = table match {
    case iceberg if iceberg.getClass.getName.startsWith(Package) => Some(iceberg)
    case other                                                   => Parts.of[Table](other).headOption.flatMap(tableIn)
  }

  private def ofTable(plan: SparkPlan, name: String, table: Table): TableWrite = {
    val properties = table.properties.asScala.toMap
    val format = properties.getOrElse(FormatKey, "parquet")
    val names = table.columns.map(_.name).toSet
    val writer = formats.get(format).map { case (files, usualCodec) =>
      val codec = properties.getOrElse(s"write.$format.compression-codec", usualCodec)
      FileWriter(files, Map("compression" -> codec), plan.output.filter(column => names(column.name)))
    }
    new TableWrite(plan, WrittenTable(name, properties), s"iceberg/$format", writer)
  }
}
