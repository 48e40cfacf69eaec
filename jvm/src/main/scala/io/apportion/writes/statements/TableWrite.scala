package io.apportion.writes

import io.apportion.history.{PlanFingerprint, SourcePath}
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.command.{DataWritingCommand, DataWritingCommandExec}
import org.apache.spark.sql.execution.datasources.{InsertIntoHadoopFsRelationCommand, WriteFilesExec}

/**
 * A statement that writes files with one of Spark's file formats, as a physical plan. Since Spark 3.4, the statement is
 * the root of the adaptive plan (`InsertAdaptiveSparkPlan`), unless `spark.sql.optimizer.plannedWrite.enabled` is false.
 */
private[writes] final class TableWrite private (val command: DataWritingCommandExec, val files: WriteFilesExec) {

  /** The query whose rows are written. */
  def query: SparkPlan = files.child

  /** Name of the history's entry for this query and this table or path. */
  lazy val entry: String = PlanFingerprint.combined(
    Seq("write", TableWrite.target(command.cmd), files.fileFormat.getClass.getName, PlanFingerprint.of(query).plan)
  )

  /** A copy of the statement that starts another file after this number of rows. */
  def limitedTo(rowsPerFile: Long): SparkPlan = command.cmd match {
    case insert: InsertIntoHadoopFsRelationCommand =>
      val least = (TableWrite.rowLimit(insert.options, command.conf.maxRecordsPerFile) :+ rowsPerFile).min
      val options = insert.options.filterNot { case (key, _) => key.equalsIgnoreCase(TableWrite.RowsPerFile) }
      val limited = command.copy(cmd = insert.copy(options = options + (TableWrite.RowsPerFile -> least.toString)))
      limited.copyTagsFrom(command)
      limited
    case _ => command
  }
}

private[writes] object TableWrite {

  /** Option of a write with the maximum number of rows in a file; 0 or less for no limit. */
  private val RowsPerFile = "maxRecordsPerFile"

  /** Excludes bucketed tables, and formats of other libraries, which may count sizes in another way. */
  def unapply(plan: SparkPlan): Option[TableWrite] = plan match {
    case command @ DataWritingCommandExec(_, files: WriteFilesExec)
        if files.bucketSpec.isEmpty && files.fileFormat.getClass.getName.startsWith("org.apache.spark.sql.") =>
      Some(new TableWrite(command, files))
    case _ => None
  }

  /** The table that a command writes; `None` if it writes to a path, or if its table does not exist yet. */
  def table(command: DataWritingCommand): Option[CatalogTable] = command match {
    case insert: InsertIntoHadoopFsRelationCommand => insert.catalogTable
    case other => other.productIterator.collectFirst { case table: CatalogTable => table }
  }

  private def target(command: DataWritingCommand): String = table(command).map(_.identifier.unquotedString).getOrElse {
    command match {
      case insert: InsertIntoHadoopFsRelationCommand => SourcePath.of(insert.outputPath.toString).name
      case other                                     => other.nodeName
    }
  }

  private def rowLimit(options: Map[String, String], ofSession: Long): Seq[Long] = {
    val ofWrite = options.collectFirst { case (key, value) if key.equalsIgnoreCase(RowsPerFile) => value.toLong }
    Seq(ofWrite.getOrElse(ofSession)).filter(_ > 0)
  }
}
