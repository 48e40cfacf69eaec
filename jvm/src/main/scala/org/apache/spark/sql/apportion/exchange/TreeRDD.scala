package org.apache.spark.sql.apportion.exchange

import io.apportion.decision.ranges.PartitionTree
import io.apportion.decision.ranges.PartitionTree.BlockRun
import org.apache.spark._
import org.apache.spark.rdd.RDD
import org.apache.spark.scheduler.MapStatus
import org.apache.spark.shuffle.{BaseShuffleHandle, BlockStoreShuffleReader, MetadataFetchFailedException}
import org.apache.spark.shuffle.sort.SortShuffleManager
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, UnsafeProjection}
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLShuffleReadMetricsReporter}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.storage.{BlockId, BlockManagerId}

/**
 * Reads a shuffle that was written in the blocks of a tree. A task reads the blocks of its partitions, and the blocks of
 * the groups around them, of which it keeps the rows of its partitions.
 *
 * Another attempt of a map task may have placed a row elsewhere, as that depends on the order of the rows. So a task
 * always reads the blocks of all levels, and all blocks of a map output come from the same attempt: the locations of
 * all of them are those of one moment.
 */
private[apportion] final class TreeRDD(
    var dependency: ShuffleDependency[Int, InternalRow, InternalRow],
    tree: PartitionTree,
    partitionId: Expression,
    output: Seq[Attribute],
    @transient private val specs: Array[ShufflePartitionSpec],
    metrics: Map[String, SQLMetric]
) extends RDD[InternalRow](dependency.rdd.context, Nil) {

  // As in ShuffledRowRDD. Spark passes it to the tasks.
  dependency.rdd.context.setLocalProperty(
    SortShuffleManager.FETCH_SHUFFLE_BLOCKS_IN_BATCH_ENABLED_KEY,
    SQLConf.get.fetchShuffleBlocksInBatch.toString
  )

  override def getDependencies: Seq[Dependency[_]] = Seq(dependency)

  override def getPartitions: Array[Partition] =
    Array.tabulate[Partition](specs.length)(i => TreePartition(i, TreePart.of(specs(i), tree.partitions)))

  override def getPreferredLocations(partition: Partition): Seq[String] = {
    val tracker = SparkEnv.get.mapOutputTracker.asInstanceOf[MapOutputTrackerMaster]
    val part = partition.asInstanceOf[TreePartition].part
    if (part.readsAllMaps)
      part
        .runs(tree)
        .flatMap(run => run.start until run.end)
        .flatMap(tracker.getPreferredLocationsForShuffle(dependency, _))
    else tracker.getMapLocation(dependency, part.firstMap, part.endMap)
  }

  override def compute(partition: Partition, context: TaskContext): Iterator[InternalRow] = {
    val part = partition.asInstanceOf[TreePartition].part
    val reporter = new SQLShuffleReadMetricsReporter(context.taskMetrics().createTempShuffleReadMetrics(), metrics)
    val outputs = MapOutputs.of(dependency.shuffleId)
    val (shared, own) = part.runs(tree).partition(_.isShared)
    def read(blocks: Iterator[(BlockManagerId, collection.Seq[(BlockId, Long, Int)])], inBatch: Boolean) =
      new BlockStoreShuffleReader(
        dependency.shuffleHandle.asInstanceOf[BaseShuffleHandle[Int, InternalRow, InternalRow]],
        blocks,
        context,
        reporter,
        shouldBatchFetch = inBatch
      ).read().map(_._2.asInstanceOf[InternalRow])

    val ownRows = own.iterator
      .map(run => run -> outputs.blocks(part, run))
      .filter(_._2.nonEmpty)
      .flatMap { case (run, blocks) => read(blocks, SortShuffleManager.canUseBatchFetch(run.start, run.end, context)) }
    val sharedBlocks = outputs.blocks(part, shared)
    if (sharedBlocks.isEmpty) ownRows
    else {
      val partitionOf = UnsafeProjection.create(Seq(partitionId), output)
      partitionOf.initialize(partition.index)
      ownRows ++ read(sharedBlocks, inBatch = false).filter { row =>
        val i = partitionOf(row).getInt(0)
        i >= part.from && i < part.until
      }
    }
  }

  override def clearDependencies(): Unit = {
    super.clearDependencies()
    dependency = null
  }
}

private final case class TreePartition(index: Int, part: TreePart) extends Partition

/** Partitions `[from, until)` in the outputs of the map tasks `[firstMap, endMap)`. */
private[apportion] final case class TreePart(from: Int, until: Int, firstMap: Int, endMap: Int) {
  def readsAllMaps: Boolean = endMap == Int.MaxValue
  def runs(tree: PartitionTree): Seq[BlockRun] = tree.runs(from, until)
}

private[apportion] object TreePart {
  def of(spec: ShufflePartitionSpec, partitions: Int): TreePart = spec match {
    case CoalescedPartitionSpec(from, until, _)              => TreePart(from, until, 0, Int.MaxValue)
    case PartialReducerPartitionSpec(i, firstMap, endMap, _) => TreePart(i, i + 1, firstMap, endMap)
    case PartialMapperPartitionSpec(map, from, until)        => TreePart(from, until, map, map + 1)
    case CoalescedMapperPartitionSpec(firstMap, endMap, _)   => TreePart(0, partitions, firstMap, endMap)
  }
}

/** The outputs of all map tasks of a shuffle at one moment. */
private[apportion] final class MapOutputs(shuffle: Int, statuses: Array[MapStatus], onMissing: () => Unit) {

  /**
   * Blocks of all runs that are not empty, by their location. A location must come once: of each executor on its host,
   * Spark's `ShuffleBlockFetcherIterator` fetches only the blocks that come last, and waits for the others without end.
   */
  def blocks(part: TreePart, runs: Seq[BlockRun]): Iterator[(BlockManagerId, collection.Seq[(BlockId, Long, Int)])] =
    runs.flatMap(blocks(part, _)).groupMap(_._1)(_._2).iterator.map { case (location, its) => location -> its.flatten }

  /** Blocks that are not empty, by their location. */
  def blocks(part: TreePart, run: BlockRun): Iterator[(BlockManagerId, collection.Seq[(BlockId, Long, Int)])] = {
    val endMap = if (part.readsAllMaps) statuses.length else part.endMap
    try MapOutputTracker.convertMapStatuses(shuffle, run.start, run.end, statuses, part.firstMap, endMap).iter
    catch {
      case missing: MetadataFetchFailedException =>
        onMissing()
        throw missing
    }
  }
}

private[apportion] object MapOutputs {
  private val Attempts = 10

  def of(shuffle: Int): MapOutputs = SparkEnv.get.mapOutputTracker match {
    case driver: MapOutputTrackerMaster =>
      // The driver changes its array while tasks run.
      val statuses = driver.shuffleStatuses.get(shuffle).fold(Array.empty[MapStatus])(_.withMapStatuses(_.clone))
      new MapOutputs(shuffle, statuses, () => ())
    case executor: MapOutputTrackerWorker =>
      // As in Spark's own reader: if an output is missing, the next task asks the driver again.
      new MapOutputs(shuffle, fetched(executor, shuffle), () => executor.mapStatuses.clear())
    case other => throw new IllegalStateException(s"unknown kind of map output tracker: ${other.getClass.getName}")
  }

  /** An executor never changes the array that it got from the driver. Other tasks may drop it from the cache. */
  private def fetched(executor: MapOutputTrackerWorker, shuffle: Int): Array[MapStatus] =
    Iterator
      .continually {
        // An empty range of map tasks: the call only fetches the array.
        executor.getMapSizesByExecutorId(shuffle, 0, 0, 0, 1)
        executor.mapStatuses.get(shuffle)
      }
      .take(Attempts)
      .collectFirst { case Some(statuses) => statuses }
      .getOrElse(
        throw new MetadataFetchFailedException(shuffle, 0, s"the map outputs of shuffle $shuffle keep changing")
      )
}
