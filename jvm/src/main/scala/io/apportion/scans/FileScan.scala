package io.apportion.scans

import java.util.concurrent.TimeUnit

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import io.apportion.util.AnyVersion
import org.apache.spark.sql.apportion.SelectedFiles
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.PlanExpression
import org.apache.spark.sql.connector.read.Scan
import org.apache.spark.sql.execution.{FileSourceScanExec, SparkPlan}
import org.apache.spark.sql.execution.datasources.{
  v2,
  CatalogFileIndex,
  HadoopFsRelation,
  PartitionDirectory,
  PartitioningAwareFileIndex
}
import org.apache.spark.sql.execution.datasources.orc.OrcFileFormat
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec
import org.apache.spark.sql.execution.datasources.v2.csv.CSVScan
import org.apache.spark.sql.execution.datasources.v2.json.JsonScan
import org.apache.spark.sql.execution.datasources.v2.orc.OrcScan
import org.apache.spark.sql.execution.datasources.v2.parquet.ParquetScan
import org.apache.spark.sql.execution.datasources.v2.text.TextScan
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** A file scan. Spark splits the files by confs of the session in which the scan was created. */
private[apportion] sealed abstract class FileScan(val plan: SparkPlan) {

  /** The session with the confs by which Spark splits the files. */
  def session: SparkSession

  def option(key: String): Option[String]

  /** Whether Spark's own indexes list the files. That needs no Spark job. */
  def isListedBySpark: Boolean

  /** The files that are known before the query runs. Filters with subqueries are not applied. */
  def files: FileSplits

  /** Share of the bytes that belongs to the columns that are read. */
  def readShare: Double

  /**
   * A copy in another session, with one more option. Spark compares scans without their session, so the option tells
   * copies apart.
   */
  def withSession(other: SparkSession, option: (String, String)): SparkPlan
}

private[apportion] object FileScan {

  /**
   * Excludes bucketed scans, which have a task for each bucket, and subclasses of Spark's scan and relation, which may
   * list and split files in another way.
   */
  def unapply(plan: SparkPlan): Option[FileScan] = plan match {
    case scan: FileSourceScanExec
        if scan.getClass == classOf[FileSourceScanExec] && scan.relation.getClass == classOf[HadoopFsRelation] &&
          !scan.bucketedScan =>
      Some(new OfRelation(scan))
    case scan: BatchScanExec => TableScan.of(scan.scan).map(new OfTable(scan, _))
    case _                   => None
  }

  /** Whether the files of a relation are listed by Spark's own indexes, or were listed before. */
  def isListedBySpark(relation: HadoopFsRelation): Boolean = relation.location match {
    case _: PartitioningAwareFileIndex | _: CatalogFileIndex | _: ListedFileIndex => true
    case _                                                                        => false
  }

  private final class OfRelation(scan: FileSourceScanExec) extends FileScan(scan) {
    private val relation = scan.relation
    private lazy val listing = SelectedFiles.of(scan)

    private val isColumnar = relation.fileFormat match {
      case _: ParquetFileFormat | _: OrcFileFormat => true
      case _                                       => false
    }

    def session: SparkSession = relation.sparkSession

    def option(key: String): Option[String] = relation.options.get(key)

    def isListedBySpark: Boolean = FileScan.isListedBySpark(relation)

    def files: FileSplits =
      splits(listing, isColumnar, relation.fileFormat.isSplitable(relation.sparkSession, relation.options, _))

    def readShare: Double = if (isColumnar) ReadColumns.share(scan.requiredSchema, relation.dataSchema) else 1

    def withSession(other: SparkSession, option: (String, String)): SparkPlan = {
      val took = TimeUnit.MILLISECONDS.toNanos(scan.driverMetrics("metadataTime").value)
      val listed =
        new ListedFileIndex(relation.location, (scan.partitionFilters, scan.dataFilters), listing, Some(took))
      AnyVersion.replace(
        scan,
        relation,
        relation.copy(location = listed, options = relation.options + option)(other)
      )
    }
  }

  /**
   * A scan of Spark's data source API, version 2. It keeps all files in memory, and each copy filters that list again.
   */
  private final class OfTable(scan: BatchScanExec, table: TableScan) extends FileScan(scan) {
    private val fileScan = table.scan

    private val isColumnar = fileScan match {
      case _: ParquetScan | _: OrcScan => true
      case _                           => false
    }

    def session: SparkSession = fileScan.sparkSession

    def option(key: String): Option[String] = Option(table.options.get(key))

    def isListedBySpark: Boolean = true

    def files: FileSplits = {
      val static = fileScan.partitionFilters.filterNot(_.exists(_.isInstanceOf[PlanExpression[_]]))
      splits(fileScan.fileIndex.listFiles(static, fileScan.dataFilters), isColumnar, fileScan.isSplitable)
    }

    def readShare: Double = if (isColumnar) ReadColumns.share(fileScan.readDataSchema, fileScan.dataSchema) else 1

    def withSession(other: SparkSession, option: (String, String)): SparkPlan = {
      val options = table.options.asCaseSensitiveMap.asScala.toMap + option
      AnyVersion.replace(scan, fileScan, table.copy(other, new CaseInsensitiveStringMap(options.asJava)))
    }
  }

  /**
   * Whether a file can be split depends on the format, the options and the extension of its path, which names the codec
   * (`TextBasedFileFormat.isSplitable`, 3.5 to 4.2). Columnar formats ignore the path.
   */
  private def splits(
      directories: Seq[PartitionDirectory],
      isColumnar: Boolean,
      canBeCut: Path => Boolean
  ): FileSplits = {
    val cuttable, uncut = Array.newBuilder[Long]
    val answers = mutable.Map.empty[String, Boolean]
    def byExtension(path: Path): Boolean = {
      val name = path.getName
      answers.getOrElseUpdate(name.substring(name.lastIndexOf('.') + 1), canBeCut(path))
    }
    lazy val anyPath = canBeCut(directories.flatMap(_.files.headOption).head.getPath)
    for (directory <- directories; file <- directory.files) {
      val sizes = if (if (isColumnar) anyPath else byExtension(file.getPath)) cuttable else uncut
      sizes += file.getLen
    }
    new FileSplits(cuttable.result(), uncut.result())
  }

  /** A version 2 scan of one of Spark's formats. All these scans have options, but no common type declares them. */
  private final class TableScan(val scan: v2.FileScan with Product) {
    val options: CaseInsensitiveStringMap =
      scan.productIterator.collectFirst { case options: CaseInsensitiveStringMap => options }.get

    def copy(session: SparkSession, others: CaseInsensitiveStringMap): v2.FileScan =
      AnyVersion.replace(AnyVersion.replace(scan, scan.sparkSession, session), options, others)
  }

  private object TableScan {
    def of(scan: Scan): Option[TableScan] = scan match {
      case s: ParquetScan => Some(new TableScan(s))
      case s: OrcScan     => Some(new TableScan(s))
      case s: CSVScan     => Some(new TableScan(s))
      case s: JsonScan    => Some(new TableScan(s))
      case s: TextScan    => Some(new TableScan(s))
      case _              => None
    }
  }
}
