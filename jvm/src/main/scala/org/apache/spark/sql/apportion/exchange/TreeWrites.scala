package org.apache.spark.sql.apportion.exchange

import io.apportion.decision.ranges.{BlockChooser, PartitionTree}
import org.apache.spark._
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.apportion.exchange.writer.PlacedRows
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.metric.SQLMetric

/** Writes of rows that are partitioned by the hash of keys, into the blocks of a tree of partition groups. */
private[apportion] final class TreeWrites(
    hash: HashPartitioning,
    override val tree: PartitionTree,
    rows: RowsToWrite,
    goal: WriteGoal
) extends ShuffleWrites {

  private val partitionId = TreeWrites.partitionId(hash)

  override val dependency: ShuffleDependency[Int, InternalRow, InternalRow] = {
    val (tree, output, partitionId, blocks) = (this.tree, rows.output, this.partitionId, rows.blocks)
    val level = goal.level(tree)
    // Each map task counts for all of them.
    val mapTasks = rows.rdd.getNumPartitions.max(1)
    val shares = tree.groups.map(goal.groupBytes(_) / mapTasks)
    val rowShare = goal.rowBytes / mapTasks
    val likely = goal.likely.rowBytes / mapTasks
    val placed = rows.rdd.mapPartitionsInternal { input =>
      val partitionOf = UnsafeProjection.create(Seq(partitionId), output)
      partitionOf.initialize(TaskContext.getPartitionId())
      new PlacedRows(input, partitionOf(_).getInt(0), new BlockChooser(tree, level, shares, rowShare), likely, blocks)
    }
    rows.dependency(placed, tree.blocks, goal.canOpenFiles(tree))
  }

  override def read(specs: Array[ShufflePartitionSpec], metrics: Map[String, SQLMetric]): RDD[InternalRow] =
    new TreeRDD(dependency, tree, partitionId, rows.output, specs, metrics)
}

private[apportion] object TreeWrites {

  /**
   * Partition of a row. Spark takes the hash modulo the number of partitions. For a power of two, the last bits of the
   * hash are the same number, without a branch for negative hashes.
   */
  def partitionId(hash: HashPartitioning): Expression = hash.partitionIdExpression match {
    case Pmod(value, Literal(n: Int, _), _) if Integer.bitCount(n) == 1 => BitwiseAnd(value, Literal(n - 1))
    case other                                                          => other
  }
}
