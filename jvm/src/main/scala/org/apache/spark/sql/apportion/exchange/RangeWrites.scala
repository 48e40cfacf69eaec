package org.apache.spark.sql.apportion.exchange

import java.util.Comparator

import scala.collection.mutable

import io.apportion.decision.ranges.{BlockChooser, PartitionTree}
import org.apache.spark._
import org.apache.spark.rdd.{PartitionPruningRDD, RDD}
import org.apache.spark.sql.apportion.exchange.writer.PlacedRows
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BoundReference, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.catalyst.expressions.codegen.LazilyGeneratedOrdering
import org.apache.spark.sql.catalyst.plans.physical.RangePartitioning
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.util.LongAccumulator

/**
 * Writes of rows that are partitioned by ranges of sort keys. Spark samples the keys before it writes the first row. The
 * sample counts the rows of all map tasks, so the number of partitions that they need is known in time, and no tree is
 * needed.
 */
private[apportion] final class RangeWrites(range: RangePartitioning, rows: RowsToWrite, goal: WriteGoal)
    extends ShuffleWrites {

  private implicit val ordering: LazilyGeneratedOrdering = new LazilyGeneratedOrdering(
    range.ordering.zipWithIndex.map { case (order, i) =>
      order.copy(child = BoundReference(i, order.dataType, order.nullable))
    }
  )

  /** Uncompressed bytes of all rows, once they are sampled. */
  private val rowBytes = new LongAccumulator

  private val bounds: Array[InternalRow] = if (range.numPartitions <= 1) Array.empty else sampledBounds()

  /** Its only level has no limits. */
  override val tree: PartitionTree = PartitionTree(bounds.length + 1)

  override val dependency: ShuffleDependency[Int, InternalRow, InternalRow] = {
    val (keys, output, bounds, ordering, tree, blocks) =
      (range.ordering.map(_.child), rows.output, this.bounds, this.ordering, this.tree, rows.blocks)
    val likelyBytes = rowBytes.value / rows.rdd.getNumPartitions.max(1)
    val placed = rows.rdd.mapPartitionsInternal { input =>
      val keyOf = UnsafeProjection.create(keys, output)
      keyOf.initialize(TaskContext.getPartitionId())
      new PlacedRows(
        input,
        row => RangeWrites.partitionOf(keyOf(row), bounds, ordering),
        new BlockChooser(tree, first = 0, shares = Array.empty, rowShare = Long.MaxValue),
        likelyBytes,
        blocks
      )
    }
    rows.dependency(placed, partitions, goal.canOpenFiles(tree))
  }

  override def read(specs: Array[ShufflePartitionSpec], metrics: Map[String, SQLMetric]): RDD[InternalRow] =
    new ShuffledRowRDD(dependency, metrics, specs)

  /**
   * Samples as many keys as Spark's `RangePartitioner` does, which does not give the number of rows away. The driver
   * holds them, so the partitions that Apportion adds get none.
   */
  private def sampledBounds(): Array[InternalRow] = {
    rows.rdd.sparkContext.register(rowBytes)
    val conf = SQLConf.get
    val sparks = conf.numShufflePartitions.max(SQLConf.SHUFFLE_PARTITIONS.defaultValue.get).min(range.numPartitions)
    val sampleSize = (conf.rangeExchangeSampleSizePerPartition.toDouble * sparks).min(1e6)
    val perMapTask = math.ceil(3 * sampleSize / rows.rdd.getNumPartitions.max(1)).toInt
    val (count, samples) = RangePartitioner.sketch(keysOf(Some(rowBytes)), perMapTask)
    if (count == 0) Array.empty
    else {
      val fraction = (sampleSize / count).min(1.0)
      // A map task with far more rows than others is sampled again, by its share of all rows.
      val (large, usual) = samples.partition { case (_, n, _) => fraction * n > perMapTask }
      val candidates = mutable.ArrayBuffer.empty[(InternalRow, Float)]
      for ((_, n, sample) <- usual; key <- sample) candidates += key -> (n.toDouble / sample.length).toFloat
      if (large.nonEmpty) {
        val ids = large.map(_._1).toSet
        val again =
          PartitionPruningRDD.create(keysOf(None), ids).sample(withReplacement = false, fraction, RangeWrites.Seed)
        candidates ++= again.collect().map(_ -> (1 / fraction).toFloat)
      }
      RangePartitioner.determineBounds(
        candidates,
        goal.ranges(rowBytes.value, range.numPartitions).min(candidates.size)
      )
    }
  }

  private def keysOf(rowBytes: Option[LongAccumulator]): RDD[InternalRow] = {
    val (keys, output) = (range.ordering.map(_.child), rows.output)
    rows.rdd.mapPartitionsInternal { input =>
      val keyOf = UnsafeProjection.create(keys, output)
      keyOf.initialize(TaskContext.getPartitionId())
      var bytes = 0L
      rowBytes.foreach(sum => TaskContext.get().addTaskCompletionListener[Unit](_ => sum.add(bytes)))
      input.map { row =>
        bytes += row.asInstanceOf[UnsafeRow].getSizeInBytes
        keyOf(row).copy(): InternalRow
      }
    }
  }
}

private object RangeWrites {
  private val Seed = 42L

  /** Number of bounds below a key. */
  def partitionOf(key: InternalRow, bounds: Array[InternalRow], ordering: Comparator[InternalRow]): Int = {
    var (low, high) = (0, bounds.length)
    while (low < high) {
      val middle = (low + high) >>> 1
      if (ordering.compare(key, bounds(middle)) > 0) low = middle + 1 else high = middle
    }
    low
  }
}
