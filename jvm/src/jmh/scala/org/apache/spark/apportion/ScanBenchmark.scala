package org.apache.spark.apportion

import scala.collection.mutable
import scala.util.Random

import io.apportion.scans.ScanTasks
import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.spark.sql.{DataFrames, SparkSession}
import org.apache.spark.sql.execution.FileSourceScanExec
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
import org.apache.spark.sql.types.StructType

/**
 * What it costs to decide the tasks of a scan of a million files, beside Spark's own planning of the scan: the listing from an
 * index in memory, cutting the files, and packing the pieces. Turn by turn in one session.
 */
object ScanBenchmark {
  private val Files = 1000000
  private val Rounds = 12

  private val Spark = "Spark's planning"

  /** A scan of a million Parquet files of about 1 MB, beside Spark's own planning in one session. */
  def run(): Seq[Result] = Turns.inSession("local[2]") { session =>
    val location = new ManyFiles(session)
    val relation =
      HadoopFsRelation(location, new StructType, location.columns, None, new ParquetFileFormat, Map.empty)(session)
    val plan = DataFrames.of(session, LogicalRelation(relation)).queryExecution.sparkPlan
    def scan: FileSourceScanExec =
      plan.collectFirst { case its: FileSourceScanExec => its.copy() }.get
    val cases = Seq(
      "left to Spark" -> Nil,
      "fewer tasks, from a target size that is set" -> Seq("dataVolumePerTask" -> "1GB"),
      "the number is set" -> Seq("sources.parallelism" -> "1234")
    )
    val variants = cases.map { case (name, settings) => name -> (() => decide(session, scan, settings)) }
    val measured = Turns.rounds(Rounds, warmUp = Rounds / 4)(
      variants :+ Spark -> (() => Turns.millis(scan.inputRDD.getNumPartitions))
    )
    Result(Spark, "milliseconds", Turns.median(measured.map(_(Spark))), 0) +: cases.flatMap { case (name, _) =>
      Seq(
        Result(name, "milliseconds", Turns.median(measured.map(_(name))), 0),
        Turns.ratio(name, "share of Spark's planning", measured.map(round => round(name) / round(Spark)))
      )
    }
  }

  /** Milliseconds to decide about a scan whose files are listed. */
  private def decide(session: SparkSession, scan: FileSourceScanExec, settings: Seq[(String, String)]): Double = {
    settings.foreach { case (key, value) => session.conf.set(s"spark.apportion.$key", value) }
    scan.selectedPartitions
    val millis = Turns.millis(ScanTasks(session, Nil)(scan))
    settings.foreach { case (key, _) => session.conf.unset(s"spark.apportion.$key") }
    millis
  }

  private final class ManyFiles(session: SparkSession) extends PartitioningAwareFileIndex(session, Map.empty, None) {
    val columns: StructType = StructType.fromDDL("id LONG, k LONG, text STRING")

    private val files: Seq[FileStatus] = {
      val random = new Random(1)
      // Lognormal sizes around 1 MB.
      (0 until Files).map { n =>
        val bytes = math.exp(13.8 + random.nextGaussian()).toLong
        new FileStatus(bytes, false, 1, 128L << 20, 0, new Path(s"file:/warehouse/events/part-$n.parquet"))
      }.toVector
    }

    override def allFiles(): Seq[FileStatus] = files
    override def partitionSpec(): PartitionSpec = PartitionSpec.emptySpec
    override def rootPaths: Seq[Path] = Seq(new Path("file:/warehouse/events"))
    override def refresh(): Unit = ()
    override protected def leafFiles: mutable.LinkedHashMap[Path, FileStatus] = mutable.LinkedHashMap.empty
    override protected def leafDirToChildrenFiles: Map[Path, Array[FileStatus]] = Map.empty
    override def sizeInBytes: Long = files.map(_.getLen).sum
  }
}
