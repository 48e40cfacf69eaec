package io.apportion.sources

import scala.jdk.CollectionConverters._

import io.apportion.CaseClass
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.{Expression, PlanExpression}
import org.apache.spark.sql.connector.read.Scan
import org.apache.spark.sql.execution.{FileSourceScanExec, SparkPlan}
import org.apache.spark.sql.execution.datasources.{v2, FileIndex}
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec
import org.apache.spark.sql.execution.datasources.v2.csv.CSVScan
import org.apache.spark.sql.execution.datasources.v2.json.JsonScan
import org.apache.spark.sql.execution.datasources.v2.orc.OrcScan
import org.apache.spark.sql.execution.datasources.v2.parquet.ParquetScan
import org.apache.spark.sql.execution.datasources.v2.text.TextScan
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** A scan of files, which Spark cuts by settings of a session that the scan was made in. */
private[sources] sealed abstract class FileScan(val plan: SparkPlan) {

  /** The session whose settings it is cut by. */
  def session: SparkSession

  def option(key: String): Option[String]

  /** The same cut by the settings of another session, and with an option more: two scans are equal whatever their sessions. */
  def withSession(other: SparkSession, option: (String, String)): SparkPlan

  /** As far as they are known before the query runs. */
  def files: Seq[FileSplits.File]

  protected def list(
      index: FileIndex,
      partitionFilters: Seq[Expression],
      dataFilters: Seq[Expression],
      canBeCut: Path => Boolean
  ): Seq[FileSplits.File] = {
    val static = partitionFilters.filterNot(_.exists(_.isInstanceOf[PlanExpression[_]]))
    for (directory <- index.listFiles(static, dataFilters); file <- directory.files)
      yield FileSplits.File(file.getLen, canBeCut(file.getPath))
  }
}

private[sources] object FileScan {

  /** Bucketed scans have a task for each bucket. */
  def unapply(plan: SparkPlan): Option[FileScan] = plan match {
    case scan: FileSourceScanExec if !scan.bucketedScan => Some(new OfRelation(scan))
    case scan: BatchScanExec                            => TableScan.of(scan.scan).map(new OfTable(scan, _))
    case _                                              => None
  }

  private final class OfRelation(scan: FileSourceScanExec) extends FileScan(scan) {
    private val relation = scan.relation

    def session: SparkSession = relation.sparkSession

    def option(key: String): Option[String] = relation.options.get(key)

    def files: Seq[FileSplits.File] = list(
      relation.location,
      scan.partitionFilters,
      scan.dataFilters,
      relation.fileFormat.isSplitable(relation.sparkSession, relation.options, _)
    )

    def withSession(other: SparkSession, option: (String, String)): SparkPlan =
      CaseClass.withFirst(scan, relation.copy(options = relation.options + option)(other))
  }

  private final class OfTable(scan: BatchScanExec, table: TableScan) extends FileScan(scan) {
    private val fileScan = table.scan

    def session: SparkSession = fileScan.sparkSession

    def option(key: String): Option[String] = Option(table.options.get(key))

    def files: Seq[FileSplits.File] =
      list(fileScan.fileIndex, fileScan.partitionFilters, fileScan.dataFilters, fileScan.isSplitable)

    def withSession(other: SparkSession, option: (String, String)): SparkPlan = {
      val options = table.options.asCaseSensitiveMap.asScala.toMap + option
      scan.copy(scan = table.copy(other, new CaseInsensitiveStringMap(options.asJava)))
    }
  }

  /** The scans of Spark's own formats as tables (version 2 of its API); each has these fields, but their type does not say so. */
  private final case class TableScan(
      scan: v2.FileScan,
      options: CaseInsensitiveStringMap,
      copy: (SparkSession, CaseInsensitiveStringMap) => v2.FileScan
  )

  private object TableScan {
    def of(scan: Scan): Option[TableScan] = scan match {
      case s: ParquetScan => Some(TableScan(s, s.options, (session, o) => s.copy(sparkSession = session, options = o)))
      case s: OrcScan     => Some(TableScan(s, s.options, (session, o) => s.copy(sparkSession = session, options = o)))
      case s: CSVScan     => Some(TableScan(s, s.options, (session, o) => s.copy(sparkSession = session, options = o)))
      case s: JsonScan    => Some(TableScan(s, s.options, (session, o) => s.copy(sparkSession = session, options = o)))
      case s: TextScan    => Some(TableScan(s, s.options, (session, o) => s.copy(sparkSession = session, options = o)))
      case _              => None
    }
  }
}
