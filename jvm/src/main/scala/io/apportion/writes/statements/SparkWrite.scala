package io.apportion.writes.statements

import io.apportion.history.SourcePath
import io.apportion.rules.CurrentQuery
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.command._
import org.apache.spark.sql.execution.datasources.{
  InsertIntoHadoopFsRelationCommand,
  TextBasedFileFormat,
  WriteFilesExec
}

/**
 * A statement that writes files with one of Spark's file formats. Since Spark 3.4, the statement is the root of the
 * adaptive plan (`InsertAdaptiveSparkPlan`), unless `spark.sql.optimizer.plannedWrite.enabled` is false.
 */
private[writes] final class SparkWrite private (
    command: DataWritingCommandExec,
    insert: InsertIntoHadoopFsRelationCommand,
    files: WriteFilesExec,
    table: WrittenTable
) extends TableWrite(
      files.child,
      table,
      files.fileFormat.getClass.getName,
      files.fileFormat match {
        case _: TextBasedFileFormat => TableWrite.textRatio
        case _                      => TableWrite.columnarRatio
      }
    ) {

  override def limitsRows: Boolean = true

  override def limitedTo(rowsPerFile: Long): SparkPlan = {
    val options = CaseInsensitiveMap(insert.options)
    val asked = options.get(SparkWrite.RowsPerFile).fold(command.conf.maxRecordsPerFile)(_.toLong)
    val least = if (asked > 0) asked.min(rowsPerFile) else rowsPerFile
    val changed = (options + (SparkWrite.RowsPerFile -> least.toString)).originalMap
    val limited = command.copy(cmd = insert.copy(options = changed))
    limited.copyTagsFrom(command)
    limited
  }
}

private[writes] object SparkWrite {

  /** Option of a write with the maximum number of rows in a file; 0 or less for no limit. */
  private val RowsPerFile = "maxRecordsPerFile"

  /** Excludes bucketed tables, Hive's writers, and formats of other libraries, which may count sizes in another way. */
  def of(plan: SparkPlan, session: SparkSession): Option[SparkWrite] = plan match {
    case command @ DataWritingCommandExec(insert: InsertIntoHadoopFsRelationCommand, files: WriteFilesExec)
        if files.bucketSpec.isEmpty && files.fileFormat.getClass.getName.startsWith("org.apache.spark.sql.") =>
      Some(new SparkWrite(command, insert, files, tableOf(insert, session)))
    case _ => None
  }

  /** The command has no table if it writes to a path, or if its table does not exist yet. */
  def tableOf(insert: InsertIntoHadoopFsRelationCommand, session: SparkSession): WrittenTable =
    insert.catalogTable
      .map(table => WrittenTable(table.identifier.unquotedString, table.properties))
      .getOrElse(WrittenTable(SourcePath.of(insert.outputPath.toString).name, propertiesOfCreated(session)))

  /**
   * Properties of the table that the running statement creates: `CREATE TABLE ... AS SELECT` writes its files before the
   * table exists.
   */
  private def propertiesOfCreated(session: SparkSession): Map[String, String] =
    CurrentQuery
      .outermost(session)
      .map(_.analyzed)
      .collect { case create: CreateDataSourceTableAsSelectCommand => create.table.properties }
      .getOrElse(Map.empty)
}
