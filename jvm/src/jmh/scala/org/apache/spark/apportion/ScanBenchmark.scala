package org.apache.spark.apportion

import scala.collection.mutable
import scala.util.Random

import io.apportion.ApportionExtension
import io.apportion.scans.ScanTasks
import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.spark.sql.{DataFrames, SparkSession}
import org.apache.spark.sql.execution.{FileSourceScanExec, SparkPlan}
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

  final case class Result(name: String, tasks: Int, decideMillis: Double, share: Ratio)

  /** Milliseconds of Spark's planning, and a result for each case. */
  def run(): (Double, Seq[Result]) = {
    val session = SparkSession.builder().master("local[2]").withExtensions(new ApportionExtension).getOrCreate()
    try {
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
      val times = (1 to Rounds).map { _ =>
        val (_, spark) = time(tasksOf(scan))
        spark -> cases.map { case (_, settings) =>
          settings.foreach { case (key, value) => session.conf.set(s"spark.apportion.$key", value) }
          val listed = scan
          listed.selectedPartitions
          val (decided, millis) = time(ScanTasks(session, Nil)(listed))
          val tasks = tasksOf(decided)
          settings.foreach { case (key, _) => session.conf.unset(s"spark.apportion.$key") }
          (tasks, millis)
        }
      }
      val measured = times.drop(Rounds / 4) // The first ones warm up.
      val results = cases.zipWithIndex.map { case ((name, _), k) =>
        val millis = Ratio.quantile(measured.map(_._2(k)._2), 0.5)
        Result(name, measured.head._2(k)._1, millis, Ratio.of(measured.map { case (spark, own) => own(k)._2 / spark }))
      }
      (Ratio.quantile(measured.map(_._1), 0.5), results)
    } finally session.stop()
  }

  private def tasksOf(plan: SparkPlan): Int = plan.asInstanceOf[FileSourceScanExec].inputRDD.getNumPartitions

  private def time[T](body: => T): (T, Double) = {
    val start = System.nanoTime()
    val result = body
    (result, (System.nanoTime() - start) / 1e6)
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
