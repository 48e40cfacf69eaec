package io.apportion.scans

import java.util.concurrent.TimeUnit

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import io.apportion.util.AnyVersion
import org.apache.spark.sql.apportion.SelectedFiles
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.PlanExpression
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
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/**
 * A file scan.
 *
 * @param session session with the confs by which Spark splits the files, in which the scan was created
 * @param reader  the format of the files, or the scan of this format
 */
private[apportion] sealed abstract class FileScan(val plan: SparkPlan, val session: SparkSession, reader: AnyRef) {
  private val isColumnar = reader match {
    case _: ParquetFileFormat | _: OrcFileFormat | _: ParquetScan | _: OrcScan => true
    case _                                                                     => false
  }

  def option(key: String): Option[String]

  /** Whether Spark's own indexes list the files. That needs no Spark job. */
  def isListedBySpark: Boolean

  /** The files that are known before the query runs. Filters with subqueries are not applied. */
  def files: FileSplits

  /** Columns that are read, and columns of the files. */
  protected def columns: (StructType, StructType)

  /** Share of the bytes that belongs to the columns that are read. */
  def readShare: Double = if (isColumnar) ReadColumns.share(columns._1, columns._2) else 1

  /**
   * A copy in another session, with one more option. Spark compares scans without their session, so the option tells
   * copies apart.
   */
  def withSession(other: SparkSession, option: (String, String)): SparkPlan

  /**
   * Whether a file can be split depends on the format, the options and the extension of its path, which names the codec
   * (`TextBasedFileFormat.isSplitable`, 3.5 to 4.2). Columnar formats ignore the path.
   */
  protected final def splits(directories: Seq[PartitionDirectory], canBeCut: Path => Boolean): FileSplits = {
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
    case scan: BatchScanExec =>
      scan.scan match {
        case table: v2.FileScan with Product if SparksFormats(table.getClass) => Some(new OfTable(scan, table))
        case _                                                                => None
      }
    case _ => None
  }

  private val SparksFormats =
    Set[Class[_]](classOf[ParquetScan], classOf[OrcScan], classOf[CSVScan], classOf[JsonScan], classOf[TextScan])

  /** Whether the files of a relation are listed by Spark's own indexes, or were listed before. */
  def isListedBySpark(relation: HadoopFsRelation): Boolean = relation.location match {
    case _: PartitioningAwareFileIndex | _: CatalogFileIndex | _: ListedFileIndex => true
    case _                                                                        => false
  }

  private final class OfRelation(scan: FileSourceScanExec)
      extends FileScan(scan, scan.relation.sparkSession, scan.relation.fileFormat) {
    private val relation = scan.relation
    private lazy val listing = SelectedFiles.of(scan)

    def option(key: String): Option[String] = relation.options.get(key)

    def isListedBySpark: Boolean = FileScan.isListedBySpark(relation)

    def files: FileSplits = splits(listing, relation.fileFormat.isSplitable(session, relation.options, _))

    protected def columns: (StructType, StructType) = (scan.requiredSchema, relation.dataSchema)

    def withSession(other: SparkSession, option: (String, String)): SparkPlan = {
      val took = TimeUnit.MILLISECONDS.toNanos(scan.driverMetrics("metadataTime").value)
      val listed =
        new ListedFileIndex(relation.location, (scan.partitionFilters, scan.dataFilters), listing, Some(took))
      AnyVersion.replace(scan, relation, relation.copy(location = listed, options = relation.options + option)(other))
    }
  }

  /**
   * A scan of Spark's data source API, version 2. It keeps all files in memory, and each copy filters that list again.
   */
  private final class OfTable(scan: BatchScanExec, table: v2.FileScan with Product)
      extends FileScan(scan, table.sparkSession, table) {

    /** All scans of Spark's formats have options, but no common type declares them. */
    private val options: CaseInsensitiveStringMap =
      table.productIterator.collectFirst { case options: CaseInsensitiveStringMap => options }.get

    def option(key: String): Option[String] = Option(options.get(key))

    def isListedBySpark: Boolean = true

    def files: FileSplits = {
      val static = table.partitionFilters.filterNot(_.exists(_.isInstanceOf[PlanExpression[_]]))
      splits(table.fileIndex.listFiles(static, table.dataFilters), table.isSplitable)
    }

    protected def columns: (StructType, StructType) = (table.readDataSchema, table.dataSchema)

    def withSession(other: SparkSession, option: (String, String)): SparkPlan = {
      val others = new CaseInsensitiveStringMap((options.asCaseSensitiveMap.asScala.toMap + option).asJava)
      AnyVersion.replace(scan, table, AnyVersion.replace(AnyVersion.replace(table, session, other), options, others))
    }
  }
}
