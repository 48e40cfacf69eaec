package io.apportion.joins

import scala.util.Try

import io.apportion.history.PlanFingerprint
import io.apportion.scans.FileScan
import io.apportion.util.BoundedMap
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.FileStatus
import org.apache.parquet.hadoop.ParquetFileReader
import org.apache.parquet.hadoop.util.HadoopInputFile
import org.apache.spark.sql.apportion.SelectedFiles
import org.apache.spark.sql.catalyst.expressions.{And, Expression, IsNotNull, PlanExpression}
import org.apache.spark.sql.execution.{FileSourceScanExec, FilterExec, ProjectExec, SparkPlan}
import org.apache.spark.sql.execution.adaptive.QueryStageExec
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
import org.apache.spark.sql.execution.exchange.{ReusedExchangeExec, ShuffleExchangeLike}

/**
 * Number of rows of a few Parquet files, from their footers. Spark plans broadcasts by the bytes of files, and columns
 * of few values take up hardly any: two million rows can be less than `spark.sql.autoBroadcastJoinThreshold`.
 */
private[apportion] object ParquetRows {

  /** A byte of a file that stands for more bytes of a table is so rare that the footers are not worth reading. */
  private val MaxBytesPerByte = 100

  /** A footer in an object store takes about 100 ms. */
  private val MaxFiles = 8

  /**
   * Rows that a plan scans, if it keeps all of them.
   *
   * @param tooLarge bytes of the smallest table that matters
   */
  def of(plan: SparkPlan, tooLarge: Long): Option[Long] = plan match {
    // Spark plans again while a shuffle of the rows runs, and again would broadcast them by the bytes of the files.
    case stage: QueryStageExec                                => of(stage.plan, tooLarge)
    case reused: ReusedExchangeExec                           => of(reused.child, tooLarge)
    case exchange: ShuffleExchangeLike                        => of(exchange.child, tooLarge)
    case PlanFingerprint.Transparent(child)                   => of(child, tooLarge)
    case ProjectExec(_, child)                                => of(child, tooLarge)
    case FilterExec(condition, child) if keepsRows(condition) => of(child, tooLarge)
    case scan: FileSourceScanExec if isWhole(scan)            =>
      val files = SelectedFiles.of(scan).flatMap(_.files).map(_.fileStatus)
      if (files.length > MaxFiles || files.map(_.getLen).sum < tooLarge / MaxBytesPerByte) None
      else {
        val conf = scan.relation.sparkSession.sessionState.newHadoopConf()
        // Encrypted footers, for example, can only be read with keys that tasks have.
        Try(files.map(rowsOf(_, conf)).sum).toOption
      }
    case _ => None
  }

  /** Table formats have subclasses of Spark's format, deleted rows, and indexes that may need a Spark job. */
  private def isWhole(scan: FileSourceScanExec): Boolean =
    scan.relation.fileFormat.getClass == classOf[ParquetFileFormat] && FileScan.isListedBySpark(scan.relation) &&
      scan.dataFilters.forall(keepsRows) && !scan.partitionFilters.exists(_.exists(_.isInstanceOf[PlanExpression[_]]))

  /** Spark adds `IsNotNull` for the keys of a join. Other filters may leave few rows. */
  private def keepsRows(condition: Expression): Boolean = condition match {
    case And(left, right) => keepsRows(left) && keepsRows(right)
    case _: IsNotNull     => true
    case _                => false
  }

  /** Rows of files by path, length and time of the last change. Spark plans a query several times. */
  private val known = new BoundedMap[(String, Long, Long), Long](1000)

  private def rowsOf(file: FileStatus, conf: Configuration): Long =
    known.getOrCompute((file.getPath.toString, file.getLen, file.getModificationTime)) {
      val reader = ParquetFileReader.open(HadoopInputFile.fromStatus(file, conf))
      try reader.getRecordCount
      finally reader.close()
    }
}
