package org.apache.spark.sql.apportion.exchange

import scala.concurrent.Future

import io.apportion.decision.ranges.{Bytes, PartitionTree}
import org.apache.spark._
import org.apache.spark.rdd.{DeterministicLevel, RDD}
import org.apache.spark.serializer.Serializer
import org.apache.spark.sql.apportion.exchange.writer.{AdaptiveWriteProcessor, RowDependency, SerializedRowsSerializer}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.Statistics
import org.apache.spark.sql.catalyst.plans.physical.{HashPartitioning, Partitioning, RangePartitioning}
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.exchange.{ShuffleExchangeLike, ShuffleOrigin}
import org.apache.spark.sql.execution.metric._

/**
 * A shuffle whose map tasks decide while they write how finely they divide their rows. To every rule of Spark it looks
 * like the `ShuffleExchangeExec` that it replaces. It has the same partitions, and the same canonical form, so Spark
 * reuses one for the other.
 *
 * It is in Spark's namespace because map outputs, their sizes and the scheduler are private to Spark.
 *
 * @param plain Spark's exchange
 * @param goal  what the tasks that read the shuffle should read
 * @param written receives the size of the shuffle
 */
case class AdaptiveExchangeExec(
    override val outputPartitioning: Partitioning,
    override val child: SparkPlan,
    override val shuffleOrigin: ShuffleOrigin,
    override val advisoryPartitionSize: Option[Long]
)(@transient val plain: SparkPlan, @transient val goal: WriteGoal, @transient private val written: ShuffleSize => Unit)
    extends ShuffleExchangeLike {

  override def nodeName: String = plain.nodeName

  override protected def otherCopyArgs: Seq[AnyRef] = Seq(plain, goal, written)

  override protected def doCanonicalize(): SparkPlan = plain.canonicalized

  override protected def withNewChildInternal(newChild: SparkPlan): AdaptiveExchangeExec =
    copy(child = newChild)(plain.withNewChildren(Seq(newChild)), goal, written)

  private lazy val writeMetrics = SQLShuffleWriteMetricsReporter.createShuffleWriteMetrics(sparkContext)
  private lazy val readMetrics = SQLShuffleReadMetricsReporter.createShuffleReadMetrics(sparkContext)

  /** As in `ShuffleExchangeExec`, and the blocks, which Spark does not count. */
  override lazy val metrics: Map[String, SQLMetric] = Map(
    "dataSize" -> SQLMetrics.createSizeMetric(sparkContext, "data size"),
    "numPartitions" -> SQLMetrics.createMetric(sparkContext, "number of partitions"),
    TreeStatistics.BlocksMetric -> SQLMetrics.createMetric(sparkContext, "shuffle blocks written")
  ) ++ readMetrics ++ writeMetrics

  @transient private lazy val inputRDD: RDD[InternalRow] = child.execute()

  @transient private lazy val writes: ShuffleWrites = {
    val rows = RowsToWrite(
      inputRDD,
      child.output,
      new SerializedRowsSerializer(child.output.size, longMetric("dataSize")),
      writeMetrics,
      longMetric(TreeStatistics.BlocksMetric)
    )
    val writes = outputPartitioning match {
      case hash: HashPartitioning   => new TreeWrites(hash, treeOf(hash.numPartitions), rows, goal)
      case range: RangePartitioning => new RangeWrites(range, rows, goal)
      case other                    => throw new IllegalArgumentException(s"no adaptive writes for $other")
    }
    metrics("numPartitions").set(writes.partitions)
    SQLMetrics.postDriverMetricUpdates(
      sparkContext,
      sparkContext.getLocalProperty(SQLExecution.EXECUTION_ID_KEY),
      metrics("numPartitions") :: Nil
    )
    writes
  }

  /**
   * Where another attempt of a map task may write other rows, Spark repeats all of them, and each attempt must write
   * each partition into a block of its own.
   */
  private def treeOf(partitions: Int): PartitionTree =
    if (inputRDD.outputDeterministicLevel == DeterministicLevel.INDETERMINATE) PartitionTree(partitions)
    else goal.tree(partitions)

  override def numMappers: Int = inputRDD.getNumPartitions

  override def numPartitions: Int = writes.partitions

  def shuffleId: Int = writes.dependency.shuffleId

  override def runtimeStatistics: Statistics = Statistics(
    metrics("dataSize").value,
    Some(metrics(SQLShuffleWriteMetricsReporter.SHUFFLE_RECORDS_WRITTEN).value)
  )

  /**
   * As `SparkContext.submitMapStage`, with the statistics of the shuffle partitions instead of the blocks. The thread that
   * waits for them computes them: an error in the scheduler's own thread would stop the application.
   */
  @transient override lazy val mapOutputStatisticsFuture: Future[MapOutputStatistics] =
    if (inputRDD.getNumPartitions == 0) Future.successful(null)
    else {
      sparkContext.assertNotStopped()
      var ofBlocks: MapOutputStatistics = null
      lazy val ofPartitions = {
        val statistics = writes.statistics(ofBlocks)
        written(ShuffleSize(Bytes.sum(statistics.bytesByPartitionId), metrics("dataSize").value))
        statistics
      }
      val job = sparkContext.dagScheduler.submitMapStage(
        writes.dependency,
        (statistics: MapOutputStatistics) => ofBlocks = statistics,
        sparkContext.getCallSite(),
        sparkContext.getLocalProperties
      )
      new SimpleFutureAction(job, ofPartitions)
    }

  override def getShuffleRDD(partitionSpecs: Array[ShufflePartitionSpec]): RDD[InternalRow] =
    writes.read(partitionSpecs, readMetrics)

  override protected def doExecute(): RDD[InternalRow] =
    getShuffleRDD(Array.tabulate(numPartitions)(i => CoalescedPartitionSpec(i, i + 1)))
}

/**
 * Rows that all map tasks write.
 *
 * @param metrics metrics of the writer
 * @param blocks  metric of the blocks that map tasks write
 */
final case class RowsToWrite(
    rdd: RDD[InternalRow],
    output: Seq[Attribute],
    serializer: Serializer,
    metrics: Map[String, SQLMetric],
    blocks: SQLMetric
) {

  /** A shuffle of these rows, which are `placed` into blocks. */
  def dependency(
      placed: RDD[Product2[Int, InternalRow]],
      numBlocks: Int,
      canOpenFiles: Boolean
  ): ShuffleDependency[Int, InternalRow, InternalRow] =
    RowDependency(placed, numBlocks, serializer, new AdaptiveWriteProcessor(metrics, canOpenFiles))
}

/** A way to write a shuffle, and to read it. */
private[apportion] trait ShuffleWrites {
  def dependency: ShuffleDependency[Int, InternalRow, InternalRow]

  /** The blocks that map tasks write. */
  def tree: PartitionTree

  /** Number of shuffle partitions that have rows, or may have. */
  def partitions: Int = tree.partitions

  /** Statistics of the shuffle partitions, from those of the blocks. */
  def statistics(blocks: MapOutputStatistics): MapOutputStatistics =
    new TreeStatistics(blocks.shuffleId, tree, blocks.bytesByPartitionId)

  def read(specs: Array[ShufflePartitionSpec], metrics: Map[String, SQLMetric]): RDD[InternalRow]
}
