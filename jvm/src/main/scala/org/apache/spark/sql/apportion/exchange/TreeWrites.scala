package org.apache.spark.sql.apportion.exchange

import java.io.OutputStream

import io.apportion.decision.ranges.{BlockChooser, PartitionTree, Ranges}
import org.apache.spark._
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.storage.ShuffleBlockId
import org.apache.spark.util.MutablePair

/** Writes of rows that are partitioned by the hash of keys, into the blocks of a tree of partition groups. */
private[apportion] final class TreeWrites(
    hash: HashPartitioning,
    tree: PartitionTree,
    rows: RowsToWrite,
    goal: WriteGoal
) extends ShuffleWrites {

  private val partitionId = TreeWrites.partitionId(hash)

  override def partitions: Int = tree.partitions

  override val dependency: ShuffleDependency[Int, InternalRow, InternalRow] = {
    val (tree, output, partitionId, blocks) = (this.tree, rows.output, this.partitionId, rows.blocks)
    val level = goal.level(tree)
    // Each map task counts for all of them.
    val mapTasks = rows.rdd.getNumPartitions.max(1)
    def share(bytes: Long, level: Int) = (bytes * tree.allowance(level) / mapTasks).toLong
    val limits = tree.groups.indices.map(level => share(goal.groupBytes(tree.groups(level)), level)).toArray
    val rowLimits = tree.groups.indices.map(share(goal.rowBytes, _)).toArray
    val placed = rows.rdd.mapPartitionsWithIndexInternal { (index, input) =>
      val partitionOf = UnsafeProjection.create(Seq(partitionId), output)
      partitionOf.initialize(index)
      new PlacedRows(input, partitionOf, new BlockChooser(tree, level, limits, rowLimits), blocks)
    }
    rows.dependency(placed, tree.blocks, goal.canOpenFiles(tree))
  }

  override def statistics(blocks: MapOutputStatistics): MapOutputStatistics =
    new TreeStatistics(blocks.shuffleId, tree, blocks.bytesByPartitionId)

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

/**
 * Statistics of a finished shuffle.
 *
 * @param blockBytes bytes of each block of the tree, of all map tasks
 */
final class TreeStatistics(shuffle: Int, val tree: PartitionTree, val blockBytes: Array[Long])
    extends MapOutputStatistics(shuffle, tree.partitionBytes(blockBytes)) {

  /** Maximum number of blocks of each partition. A block that several partitions share counts in parts. */
  def blocks(mapTasks: Int): Array[Long] = tree.spread(blockBytes.map(bytes => if (bytes > 0) mapTasks.toLong else 0L))

  /** Numbers of groups that map tasks wrote. */
  def levels: Seq[Int] =
    tree.groups.toSeq.zip(tree.byLevel(blockBytes)).collect { case (groups, bytes) if bytes > 0 => groups }

  /** Bytes that the tasks of these ranges read more than once. */
  def readTwice(ranges: Ranges): Long = tree.readTwice(blockBytes, ranges)
}

/** Rows of a map task, each with the block that it is written to. */
private final class PlacedRows(
    rows: Iterator[InternalRow],
    partitionOf: UnsafeProjection,
    chooser: BlockChooser,
    blocks: SQLMetric
) extends Iterator[Product2[Int, InternalRow]] {
  private val placed = new MutablePair[Int, InternalRow]()
  private var sample: CompressedSample = _
  private var isOpen = true

  override def hasNext: Boolean = rows.hasNext || {
    if (isOpen) {
      isOpen = false
      blocks += chooser.written
    }
    false
  }

  override def next(): Product2[Int, InternalRow] = {
    val row = rows.next().asInstanceOf[UnsafeRow]
    val block = chooser.choose(partitionOf(row).getInt(0), row.getSizeInBytes)
    if (chooser.needsRatio) measure(row)
    placed.update(block, row)
  }

  private def measure(row: UnsafeRow): Unit = {
    if (sample == null) sample = new CompressedSample
    sample.add(row)
    if (sample.isComplete) {
      chooser.setRatio(sample.ratio)
      sample = null
    }
  }
}

/** Measures how well the rows of a shuffle can be compressed. */
private final class CompressedSample {
  private var stored, uncompressed = 0L
  private val counter = new OutputStream {
    override def write(byte: Int): Unit = stored += 1
    override def write(bytes: Array[Byte], offset: Int, length: Int): Unit = stored += length
  }
  // The compression depends on the kind of block, not on its numbers.
  private val stream = SparkEnv.get.serializerManager.wrapForCompression(ShuffleBlockId(0, 0, 0), counter)
  private val buffer = new Array[Byte](1 << 12)

  def add(row: UnsafeRow): Unit = {
    row.writeToStream(stream, buffer)
    uncompressed += row.getSizeInBytes
    if (isComplete) stream.close()
  }

  def isComplete: Boolean = uncompressed >= CompressedSample.Bytes

  def ratio: Double = uncompressed.toDouble / stored.max(1)
}

private object CompressedSample {

  /** Size of a sample: half of the blocks in which LZ4, Spark's default, compresses. */
  private val Bytes = 16 << 10
}
