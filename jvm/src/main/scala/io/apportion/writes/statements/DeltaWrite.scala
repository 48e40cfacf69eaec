package io.apportion.writes.statements

import scala.jdk.CollectionConverters._

import io.apportion.rules.CurrentQuery
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.analysis.ResolvedIdentifier
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.execution.{QueryExecution, SparkPlan}
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation

/**
 * Finds statements that write a Delta table (Delta Lake 3.3 to 4.4). A command of Delta runs several queries, and writes
 * the rows of one. Only the stack of the thread shows which one.
 */
private[writes] object DeltaWrite {
  private val Writer = "org.apache.spark.sql.delta.files.TransactionalWrite"

  /** Option, conf and table property for optimized writes, which shuffle the rows again before they are written. */
  private val OptimizeOption = "optimizeWrite"
  private val OptimizeConf = "spark.databricks.delta.optimizeWrite.enabled"
  private val OptimizeProperty = "delta.autoOptimize.optimizeWrite"

  def of(
      plan: SparkPlan,
      query: QueryExecution,
      optimized: LogicalPlan,
      session: SparkSession
  ): Option[TableWrite] =
    if (!QueryRoot.sameColumns(optimized, plan)) None
    else
      table(query, session).map { table =>
        val columns = plan.output.filterNot(column => table.partitionColumns.contains(column.name))
        new TableWrite(plan, table, "delta", Some(FileWriter(new ParquetFileFormat, Map.empty, columns)))
      }

  /** The table that the thread writes the rows of a query to. */
  def table(query: QueryExecution, session: SparkSession): Option[WrittenTable] =
    for {
      command <- CurrentQuery.outermost(session) if (command ne query) && isWriting
      table <- target(command.analyzed) if !isOptimized(command.analyzed, table, session)
    } yield table

  private def isWriting: Boolean = Thread.currentThread.getStackTrace.exists(_.getClassName.startsWith(Writer))

  private def isOptimized(command: LogicalPlan, table: WrittenTable, session: SparkSession): Boolean =
    optionsOf(command)
      .get(OptimizeOption)
      .orElse(session.conf.getOption(OptimizeConf))
      .orElse(table.properties.get(OptimizeProperty))
      .exists(_.equalsIgnoreCase("true"))

  /** Options of the write. All commands that have some have no other map. */
  private def optionsOf(command: LogicalPlan): Map[String, String] = CaseInsensitiveMap(Parts.textsOf(command))

  private def target(command: LogicalPlan): Option[WrittenTable] = command match {
    case write: V2WriteCommand =>
      Some(write.table).collect { case relation: DataSourceV2Relation =>
        val table = relation.table
        WrittenTable(relation.name, table.properties.asScala.toMap, columnsOf(table.partitioning.toSeq))
      }
    case create: V2CreateTablePlan =>
      val properties = Parts.of[TableSpec](create).headOption.fold(Map.empty[String, String])(_.properties)
      Parts.of[ResolvedIdentifier](create).headOption.map { table =>
        WrittenTable(nameOf(table), properties, columnsOf(create.partitioning))
      }
    case save: SaveIntoDataSourceCommand =>
      val columns = save.options.get(DataSourceUtils.PARTITIONING_COLUMNS_KEY)
      save.options
        .get("path")
        .map(
          WrittenTable(_, partitionColumns = columns.fold(Seq.empty[String])(DataSourceUtils.decodePartitioningColumns))
        )
    case command: Command => changed(command)
    case _                => None
  }

  /** The name that later statements have for the table: their ratios count for each other. */
  private def nameOf(table: ResolvedIdentifier): String =
    (table.catalog.name +: table.identifier.namespace.toSeq :+ table.identifier.name).mkString(".")

  /** UPDATE, DELETE and MERGE have the files of their target, and a scan of them. */
  private def changed(command: LogicalPlan): Option[WrittenTable] = {
    val files = Parts.of[FileIndex](command).headOption
    val scanned = for {
      plan <- Parts.of[LogicalPlan](command)
      scan <- plan.collectLeaves()
      relation <- Parts.of[HadoopFsRelation](scan) if files.exists(_ eq relation.location)
    } yield relation.fileFormat
    val names = Parts.of[CatalogTable](command).map(_.identifier.unquotedString) ++
      files.flatMap(_.rootPaths.headOption).map(_.toString)
    names.headOption.map(withMetadata(_, scanned.headOption))
  }

  /** The table with the partition columns and the properties in Delta's `Metadata`, which its file format has. */
  private def withMetadata(name: String, format: Option[FileFormat]): WrittenTable =
    format.toSeq
      .flatMap(Parts.of[Product](_))
      .find(_.productPrefix == "Metadata")
      .fold(WrittenTable(name)) { metadata =>
        val columns = Parts.of[Seq[Any]](metadata).take(1).flatten
        WrittenTable(name, Parts.textsOf(metadata), columns.map(_.toString))
      }

  private def columnsOf(partitioning: Seq[Transform]): Seq[String] =
    partitioning.filter(_.name == "identity").flatMap(_.references.map(_.fieldNames.mkString(".")))
}
