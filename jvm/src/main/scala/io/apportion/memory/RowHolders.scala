package io.apportion.memory

import io.apportion.decision.memory.HeldRows
import io.apportion.groups.{Advisor, ExchangeGroup, InputBytes, ShuffleLeaf}
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.catalyst.expressions.aggregate.{Complete, Final}
import org.apache.spark.sql.catalyst.optimizer.BuildLeft
import org.apache.spark.sql.catalyst.plans.LeftExistence
import org.apache.spark.sql.catalyst.plans.logical.statsEstimation.EstimationUtils
import org.apache.spark.sql.execution.adaptive.ShuffleQueryStageExec
import org.apache.spark.sql.execution.aggregate.{BaseAggregateExec, HashAggregateExec, ObjectHashAggregateExec}
import org.apache.spark.sql.execution.exchange.Exchange
import org.apache.spark.sql.execution.joins._
import org.apache.spark.sql.execution.{ExpandExec, ProjectExec, SortExec, SparkPlan, UnaryExecNode}
import org.apache.spark.sql.types.LongType

/**
 * What the operators of a stage hold of the rows of one shuffle at the same time, all operators together.
 *
 * @param copies number of times that the bytes of the rows are held
 * @param header bytes besides, for each row
 * @param arrays for each array that doubles when it is full, what it has of each row
 */
private[apportion] final case class RowHolders(copies: Double, header: Double, arrays: Seq[Entry] = Nil) {
  def +(other: RowHolders): RowHolders =
    RowHolders(copies + other.copies, header + other.header, arrays ++ other.arrays)

  /** Memory for one stored byte of a finished stage. */
  def of(stage: ShuffleQueryStageExec): HeldRows = {
    val stored = InputBytes.stored(stage)
    if (stored == 0 || this == RowHolders.Zero) HeldRows.None
    else {
      val statistics = stage.getRuntimeStatistics
      // Spark counts the rows while a stage writes them.
      perByte(statistics.sizeInBytes.toDouble / stored, statistics.rowCount.fold(0.0)(_.toDouble) / stored)
    }
  }

  /** Memory for one byte that stands for this many bytes of rows, and for this part of a row. */
  private def perByte(bytes: Double, rows: Double): HeldRows =
    HeldRows(copies * bytes + header * rows, arrays.map(entry => entry.copies * bytes + entry.perRow * rows))
}

/**
 * What an array has of each row.
 *
 * @param copies number of times that it has the bytes of the row
 * @param perRow bytes besides
 */
private[apportion] final case class Entry(copies: Double, perRow: Double)

private[apportion] object RowHolders extends Advisor {
  val Zero: RowHolders = RowHolders(0, 0)

  // `docs/measurements/memory.csv` has measurements of these numbers.

  /** A sort keeps two words for each row in an array, and radix sort needs a second half (`UnsafeInMemorySorter`). */
  private val Sort = RowHolders(1, 8, Seq(Entry(0, 32)))

  /** A hash table keeps two words for each slot, and at most half of the slots are full (`BytesToBytesMap`). */
  private val Hash = RowHolders(1, 16, Seq(Entry(0, 32)))

  /** The table of a join also has the keys, which are not columns of the row if they are computed. */
  private def joinTable(keys: Seq[Expression]): RowHolders =
    if (HashJoin.rewriteKeyExpr(keys).map(_.dataType) == Seq(LongType)) TableOfLongs
    else Hash.copy(header = Hash.header + 8 + keys.map(8 + _.dataType.defaultSize).sum)

  /** The table of a join on a long integer keeps the rows in an array too (`LongToUnsafeRowMap`). It cannot spill. */
  private val TableOfLongs = RowHolders(0, 0, Seq(Entry(1, 8), Entry(0, 32)))

  /** Aggregates of objects sort the buffers of their groups, beside the objects in memory (`ObjectAggregationIterator`). */
  private val ObjectAggregate = RowHolders(1.3, 16, Seq(Entry(0, 40)))

  override def heldRows(group: ExchangeGroup): Option[Seq[HeldRows]] =
    Some(of(group).zip(group.leaves).flatMap { case (holders, leaf) => leaf.stage.map(holders.of) })

  override def rowBytesIn(memory: Long, group: ExchangeGroup, exchange: SparkPlan): Option[Long] = {
    val perRowByte = of(group)(group.leaves.indexWhere(_.node eq exchange)).perByte(1, 1 / rowBytes(exchange)).atMost
    Some(if (perRowByte == 0) Long.MaxValue else (memory / perRowByte).toLong.max(1))
  }

  /**
   * Memory for the hash table of a join on these keys. `None` unless the rows are those of a finished shuffle, with all or
   * some of its columns.
   */
  def table(build: SparkPlan, keys: Seq[Expression]): Option[HeldRows] = {
    val shuffle = build match {
      case ProjectExec(_, child) => child
      case other                 => other
    }
    shuffle match {
      case ShuffleLeaf(ShuffleLeaf(_, _, Some(stage))) if stage.isMaterialized =>
        val perByte = flow(build).head.hold(joinTable(keys)).holders.of(stage)
        Some(perByte.dividedBy(1.0 / InputBytes.stored(stage).max(1)))
      case _ => None
    }
  }

  /** Bytes of the hash table of a join on these keys, for a number of rows with these columns. */
  def tableBytes(rows: Long, columns: Seq[Attribute], keys: Seq[Expression]): Long =
    (joinTable(keys).perByte(EstimationUtils.getSizePerRow(columns).toDouble, 1).filled * rows).toLong

  /** Holders of each leaf of a group. */
  def of(group: ExchangeGroup): Seq[RowHolders] =
    group.above.foldLeft(flow(group.root))((rows, node) => through(node, rows)).map(_.holders)

  /**
   * Rows of one leaf on their way up the plan.
   *
   * @param bytes part of the leaf's bytes that an operator puts out
   * @param rows  part of the leaf's rows that an operator puts out
   */
  private final case class Leaf(bytes: Double, rows: Double, holders: RowHolders) {
    def hold(by: RowHolders): Leaf = copy(holders =
      holders + RowHolders(
        by.copies * bytes,
        by.header * rows,
        by.arrays.map(entry => Entry(entry.copies * bytes, entry.perRow * rows))
      )
    )

    def scaled(byBytes: Double, byRows: Double = 1): Leaf = copy(bytes = bytes * byBytes, rows = rows * byRows)
  }

  /** Rows that an operator puts out, for each leaf below it. */
  private def flow(node: SparkPlan): Seq[Leaf] = node match {
    case ShuffleLeaf(_)             => Seq(Leaf(1, 1, Zero))
    case join: ShuffledHashJoinExec =>
      val (left, right) = (flow(join.left), flow(join.right))
      val table = joinTable(join.leftKeys)
      if (join.buildSide == BuildLeft) joined(join, left.map(_.hold(table)), right)
      else joined(join, left, right.map(_.hold(table)))
    case join: SortMergeJoinExec     => joined(join, flow(join.left), flow(join.right))
    case join: BroadcastHashJoinExec => through(join, flow(streamed(join)))
    case _: Exchange                 => Nil
    case unary: UnaryExecNode        => through(unary, flow(unary.child))
    case other                       => other.children.flatMap(flow)
  }

  private def joined(join: ShuffledJoin, left: Seq[Leaf], right: Seq[Leaf]): Seq[Leaf] = join.joinType match {
    case LeftExistence(_) => left ++ right.map(_.scaled(0, 0))
    // Each row has the columns of both sides, and there are about as many rows as in the mean of both sides.
    case _ => (left ++ right).map(_.scaled(1, 0.5))
  }

  /** Rows that an operator with one input from shuffles holds and puts out. */
  private def through(node: SparkPlan, input: Seq[Leaf]): Seq[Leaf] = {
    val rows = node match {
      case _: SortExec                                              => input.map(_.hold(Sort))
      case aggregate: HashAggregateExec if isFinal(aggregate)       => input.map(_.hold(Hash))
      case aggregate: ObjectHashAggregateExec if isFinal(aggregate) => input.map(_.hold(ObjectAggregate))
      case expand: ExpandExec                                       =>
        input.map(_.scaled(expand.projections.size.toDouble, expand.projections.size.toDouble))
      case _ => input
    }
    val width = node match {
      case join: BroadcastHashJoinExec => rowBytes(join) / rowBytes(streamed(join))
      case unary: UnaryExecNode        => rowBytes(unary) / rowBytes(unary.child)
      case _                           => 1.0
    }
    rows.map(_.scaled(width))
  }

  /** Whether an aggregate holds all groups of a task. A partial aggregate may have few groups, so it counts as none. */
  private def isFinal(aggregate: BaseAggregateExec): Boolean =
    aggregate.aggregateExpressions.forall(each => each.mode == Final || each.mode == Complete) &&
      aggregate.requiredChildDistributionExpressions.isDefined

  private def streamed(join: BroadcastHashJoinExec): SparkPlan =
    if (join.buildSide == BuildLeft) join.right else join.left

  private def rowBytes(plan: SparkPlan): Double = EstimationUtils.getSizePerRow(plan.output).toDouble
}
