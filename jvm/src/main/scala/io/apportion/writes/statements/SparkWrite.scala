package io.apportion.writes.statements

import io.apportion.history.SourcePath
import io.apportion.rules.CurrentQuery
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.command._
import org.apache.spark.sql.execution.datasources.{InsertIntoHadoopFsRelationCommand, WriteFilesExec}

/**
 * A statement that writes files with one of Spark's file formats. Since Spark 3.4, the statement is the root of the
 * adaptive plan (`InsertAdaptiveSparkPlan`), unless `spark.sql.optimizer.plannedWrite.enabled` is false.
 */
private[writes] final class SparkWrite private (
    command: DataWritingCommandExec,
    files: WriteFilesExec,
    table: WrittenTable,
    writer: FileWriter
) extends TableWrite(files.child, table, files.fileFormat.getClass.getName, Some(writer)) {

  override def limitsRows: Boolean = true

  override def limitedTo(rowsPerFile: Long): SparkPlan = command.cmd match {
    case insert: InsertIntoHadoopFsRelationCommand =>
      val least = (SparkWrite.rowLimit(insert.options, command.conf.maxRecordsPerFile) :+ rowsPerFile).min
      val options = insert.options.filterNot { case (key, _) => key.equalsIgnoreCase(SparkWrite.RowsPerFile) }
      val limited = command.copy(cmd = insert.copy(options = options + (SparkWrite.RowsPerFile -> least.toString)))
      limited.copyTagsFrom(command)
      limited
    case _ => command
  }
}

private[writes] object SparkWrite {

  /** Option of a write with the maximum number of rows in a file; 0 or less for no limit. */
  private val RowsPerFile = "maxRecordsPerFile"

  /** Excludes bucketed tables, and formats of other libraries, which may count sizes in another way. */
  def of(plan: SparkPlan, session: SparkSession): Option[SparkWrite] = plan match {
    case command @ DataWritingCommandExec(_, files: WriteFilesExec)
        if files.bucketSpec.isEmpty && files.fileFormat.getClass.getName.startsWith("org.apache.spark.sql.") =>
      val inPaths = files.partitionColumns.map(_.exprId).toSet
      val columns = files.child.output.filterNot(column => inPaths(column.exprId))
      val writer = FileWriter(files.fileFormat, files.options, columns)
      Some(new SparkWrite(command, files, tableOf(command.cmd, session), writer))
    case _ => None
  }

  def tableOf(command: DataWritingCommand, session: SparkSession): WrittenTable =
    existing(command)
      .map(table => WrittenTable(table.identifier.unquotedString, table.properties))
      .getOrElse(WrittenTable(pathOf(command), created(session).fold(Map.empty[String, String])(_.properties)))

  /** `None` if the command writes to a path, or if its table does not exist yet. */
  private def existing(command: DataWritingCommand): Option[CatalogTable] = command match {
    case insert: InsertIntoHadoopFsRelationCommand => insert.catalogTable
    case other                                     => Parts.of[CatalogTable](other).headOption
  }

  private def pathOf(command: DataWritingCommand): String = command match {
    case insert: InsertIntoHadoopFsRelationCommand => SourcePath.of(insert.outputPath.toString).name
    case other                                     => other.nodeName
  }

  /** The table that the running statement creates: `CREATE TABLE ... AS SELECT` writes its files before it exists. */
  private def created(session: SparkSession): Option[CatalogTable] =
    CurrentQuery.outermost(session).map(_.analyzed).collect { case create: CreateDataSourceTableAsSelectCommand =>
      create.table
    }

  private def rowLimit(options: Map[String, String], ofSession: Long): Seq[Long] = {
    val ofWrite = options.collectFirst { case (key, value) if key.equalsIgnoreCase(RowsPerFile) => value.toLong }
    Seq(ofWrite.getOrElse(ofSession)).filter(_ > 0)
  }
}
