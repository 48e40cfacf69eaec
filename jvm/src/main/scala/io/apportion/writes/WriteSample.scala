package io.apportion.writes

import java.nio.file.Files

import scala.util.control.NonFatal

import io.apportion.decision.ranges.Bytes
import io.apportion.groups.{ExchangeGroup, ShuffleLeaf}
import io.apportion.writes.statements.{FileWriter, TableWrite}
import org.apache.hadoop.mapreduce.{Job, JobID, TaskAttemptID, TaskID, TaskType}
import org.apache.hadoop.mapreduce.task.TaskAttemptContextImpl
import org.apache.spark.TaskContext
import org.apache.spark.apportion.WaitingJob
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadExec, BroadcastQueryStageExec}
import org.apache.spark.sql.execution.datasources.OutputWriterFactory
import org.apache.spark.sql.execution.datasources.v2.MergeRowsExec
import org.apache.spark.sql.types.StructType
import org.apache.spark.util.SerializableConfiguration
import org.slf4j.LoggerFactory

/**
 * Measures how many bytes of files a statement makes from its shuffles: it writes the rows of a few shuffle partitions
 * to temporary files of the executors, in the format of the table, and deletes them.
 */
private[writes] object WriteSample {
  private val log = LoggerFactory.getLogger(getClass.getName.stripSuffix("$"))

  private val MaxBytes = 4L << 20

  /** A smaller sample says little about the files, and is not worth a Spark job. */
  private val MinBytes = 256L << 10

  /** Share of the input that is read twice. */
  private val UsualShare = 1.0 / 32

  /** Maximum share of the input that is read twice, if partitions are large. */
  private val MaxShare = 1.0 / 4

  /** Number of first rows that are read twice, and the minimum number that says something about the files. */
  private val MaxRows = 20000L
  private val MinRows = 1000L

  /** Number of places in the shuffle that are read, each by a task. Sorted rows differ from place to place. */
  private val Places = 2

  /** `None` if the statement cannot be sampled, or if a sample would take too much time beside the write. */
  def measure(session: SparkSession, write: TableWrite, groups: Seq[ExchangeGroup]): Option[WrittenBytes] =
    (write.writer, groups) match {
      case (Some(writer), Seq(group)) if canRunTwice(write.query) =>
        val specs = sampleOf(group)
        attempt {
          if (specs.isEmpty) firstRows(session, writer, write.query, group)
          else run(session, writer, reading(write.query, group, specs), specs)
        }
      case _ => None
    }

  /** A failure of the query itself appears again when the query runs. */
  private def attempt[T](sample: => Option[T]): Option[T] =
    try sample
    catch {
      case NonFatal(failure) if !WaitingJob.isCancellation(failure) =>
        log.warn("Cannot write a sample of the files, so their sizes are unknown", failure)
        None
    }

  /** Rows must be the same again, and no metric that users see must count them twice. */
  private def canRunTwice(query: SparkPlan): Boolean = {
    val areKnownLeaves = query.collectLeaves().forall {
      case ShuffleLeaf(leaf)          => !leaf.node.supportsColumnar
      case _: BroadcastQueryStageExec => true
      case _                          => false
    }
    areKnownLeaves && isDeterministic(query)
  }

  private def isDeterministic(query: SparkPlan): Boolean = !query.exists {
    case _: CollectMetricsExec | _: MergeRowsExec => true
    case node                                     => !node.expressions.forall(_.deterministic)
  }

  /** Parts of the shuffles for the sample, for each of its tasks; none if they are too large or too small. */
  private def sampleOf(group: ExchangeGroup): Seq[CoalescedPartitionSpec] = {
    val total = group.inputBytes
    val wanted = (total * UsualShare).toLong.max(MinBytes).min(MaxBytes)
    val most = (total * MaxShare).toLong
    val sums = Bytes.sumEach(group.bytes)
    val ranges =
      if (total < 2 * MinBytes) Nil
      else
        Seq(SamplePlaces.of(sums, Places, wanted), SamplePlaces.nearest(sums, wanted, most))
          .find(ranges => ranges.nonEmpty && SamplePlaces.bytes(sums, ranges).sum <= most)
          .getOrElse(Nil)
    ranges.zip(SamplePlaces.bytes(sums, ranges)).map { case ((from, until), size) =>
      CoalescedPartitionSpec(from, until, size)
    }
  }

  private def run(
      session: SparkSession,
      writer: FileWriter,
      sampled: SparkPlan,
      specs: Seq[CoalescedPartitionSpec]
  ): Option[WrittenBytes] = {
    val (bytes, rows) = writeFiles(session, writer, sampled, Long.MaxValue)(identity)
    val read = specs.flatMap(_.dataSize).sum
    Option.when(bytes > 0 && rows > 0 && read > 0)(WrittenBytes(read, bytes, rows, "in a sample"))
  }

  /**
   * Writes the first rows of a large partition. They show the bytes of all files if the stage writes each row of its
   * shuffle, because Spark counts these rows.
   */
  private def firstRows(
      session: SparkSession,
      writer: FileWriter,
      written: SparkPlan,
      group: ExchangeGroup
  ): Option[WrittenBytes] = {
    val query = unsorted(written)
    for {
      leaf <- group.leaves match {
        case Seq(leaf) => Some(leaf)
        case _         => None
      }
      rows <- leaf.stage.flatMap(_.getRuntimeStatistics.rowCount).map(_.toLong)
      if group.inputBytes >= 2 * MinBytes && keepsRows(query)
      size = Bytes.largest(group.bytes.head)
      largest = group.bytes.head.indexOf(size)
      plan = reading(query, group, Seq(CoalescedPartitionSpec(largest, largest + 1, size)))
      (bytes, sampled) = writeFiles(session, writer, plan, MaxRows)(identity)
      if sampled >= MinRows.min(rows) && bytes > 0
    } yield WrittenBytes(group.inputBytes, (bytes.toDouble / sampled * rows).toLong.max(1), rows, "in a sample")
  }

  private def unsorted(query: SparkPlan): SparkPlan = query match {
    case SortExec(_, false, child, _) => child
    case other                        => other
  }

  private def keepsRows(query: SparkPlan): Boolean = query match {
    case ShuffleLeaf(_)        => true
    case ProjectExec(_, child) => keepsRows(child)
    case _                     => false
  }

  /**
   * Bytes of a row in files, from the first rows of a scan. The bytes that a scan reads for these rows say nothing: it
   * reads whole row groups.
   */
  def bytesPerRow(session: SparkSession, write: TableWrite): Option[Double] = {
    val query = unsorted(write.query)
    write.writer.filter(_ => isDeterministic(query)).flatMap { writer =>
      attempt {
        val plan = ApplyColumnarRulesAndInsertTransitions(Nil, outputsColumnar = false)(query)
        val (bytes, rows) = writeFiles(session, writer, plan, MaxRows)(_.take(1))
        Option.when(rows >= MinRows)(bytes.toDouble / rows)
      }
    }
  }

  /**
   * Writes the first rows of each task to files.
   *
   * @param most  maximum number of rows of a task
   * @param tasks chooses the tasks
   * @return bytes and rows of the files
   */
  private def writeFiles(session: SparkSession, writer: FileWriter, plan: SparkPlan, most: Long)(
      tasks: Seq[Int] => Seq[Int]
  ): (Long, Long) = {
    val schema = DataTypeUtils.fromAttributes(writer.columns)
    val job = Job.getInstance(session.sessionState.newHadoopConfWithOptions(writer.options))
    val factory = writer.format.prepareWrite(session, job, writer.options, schema)
    val task = new SampleFile(factory, new SerializableConfiguration(job.getConfiguration), schema, most)
    val rdd = CollapseCodegenStages()(ProjectExec(writer.columns, plan)).execute()
    val sizes = session.sparkContext.runJob(rdd, task, tasks(rdd.partitions.indices))
    (sizes.map(_._1).sum, sizes.map(_._2).sum)
  }

  private def reading(plan: SparkPlan, group: ExchangeGroup, specs: Seq[ShufflePartitionSpec]): SparkPlan = plan match {
    case ShuffleLeaf(ShuffleLeaf(_, _, Some(stage))) if group.stages.exists(_ eq stage) =>
      AQEShuffleReadExec(stage, specs)
    case node => node.mapChildren(reading(_, group, specs))
  }
}

/** Ranges of shuffle partitions for a sample. */
private[writes] object SamplePlaces {

  /**
   * Ranges at equal distances, which do not overlap. Each has at least its share of the wanted bytes, up to the next
   * range.
   */
  def of(bytes: Array[Long], places: Int, wanted: Long): Seq[(Int, Int)] = {
    val prefix = bytes.scanLeft(0L)(_ + _)
    val starts =
      (0 until places).map(k => prefix.indexWhere(_ > prefix.last / places * k).max(1) - 1).distinct
    starts.zip(starts.drop(1) :+ bytes.length).map { case (from, next) =>
      val end = prefix.indexWhere(_ >= prefix(from) + wanted / starts.size, from + 1)
      (from, if (end < 0) next else end.min(next))
    }
  }

  /** The partition whose bytes are nearest to the wanted ones, among those of at most `most` bytes and not too small. */
  def nearest(bytes: Array[Long], wanted: Long, most: Long): Seq[(Int, Int)] =
    bytes.indices
      .filter(i => bytes(i) <= most && bytes(i) >= wanted / 4)
      .sortBy(i => (bytes(i) - wanted).abs)
      .take(1)
      .map(i => (i, i + 1))

  def bytes(bytes: Array[Long], ranges: Seq[(Int, Int)]): Seq[Long] =
    ranges.map { case (from, until) => Bytes.sum(bytes.slice(from, until)) }
}

/**
 * Writes rows of one task to a temporary file, and returns its bytes and the number of rows.
 *
 * @param most maximum number of rows
 */
private[writes] final class SampleFile(
    factory: OutputWriterFactory,
    conf: SerializableConfiguration,
    schema: StructType,
    most: Long
) extends ((TaskContext, Iterator[InternalRow]) => (Long, Long))
    with Serializable {

  override def apply(context: TaskContext, rows: Iterator[InternalRow]): (Long, Long) =
    if (rows.isEmpty) (0, 0)
    else {
      val id = new TaskAttemptID(new TaskID(new JobID("sample", 0), TaskType.MAP, context.partitionId()), 0)
      val attempt = new TaskAttemptContextImpl(conf.value, id)
      val folder = Files.createTempDirectory("apportion-sample")
      try {
        val file = folder.resolve(s"part${factory.getFileExtension(attempt)}")
        val writer = factory.newInstance(file.toUri.toString, schema, attempt)
        var count = 0L
        try
          rows.foreach { row =>
            writer.write(row)
            count += 1
          }
        finally writer.close()
        (Files.size(file), count)
      } finally {
        // Hadoop's local file system adds a file with checksums.
        folder.toFile.listFiles().foreach(_.delete())
        Files.delete(folder)
      }
    }
}
