package io.apportion.sizing

import io.apportion.decision.ByteInterval
import io.apportion.decision.ranges.Bytes
import io.apportion.groups.RowSizeRatio
import io.apportion.history.Remembered
import org.apache.spark.sql.execution.apportion.BuildRows
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.plans.logical.statsEstimation.EstimationUtils
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive._
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec
import org.apache.spark.sql.execution.datasources.{CatalogFileIndex, FileFormat}
import org.apache.spark.sql.execution.datasources.orc.OrcFileFormat
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
import org.apache.spark.sql.execution.datasources.v2.{BatchScanExec, FileScan}
import org.apache.spark.sql.execution.exchange._
import org.apache.spark.sql.execution.joins._
import org.apache.spark.sql.execution.python.EvalPythonExec
import org.apache.spark.sql.execution.window.{WindowExec, WindowGroupLimitExec}
import org.apache.spark.sql.types.{ArrayType, BinaryType, DataType, MapType, StringType, StructType}

/**
 * Estimate of the bytes that a plan puts out, as intervals. The estimate of a finished stage is exact. Intervals of
 * files are wide, because a byte of Parquet can become many bytes in a shuffle. Operators that can multiply rows have
 * no upper bound: joins on keys that may not be unique, user functions over rows, generators, MERGE, and all
 * unknown operators.
 *
 * @param stored   bytes as shuffles store them, compressed and encoded
 * @param expanded bytes of the same rows, uncompressed
 * @param tasks    likely number of tasks that run the plan
 */
private[apportion] final case class OutputEstimate(stored: ByteInterval, expanded: ByteInterval, tasks: Long) {

  def +(other: OutputEstimate): OutputEstimate =
    OutputEstimate(stored + other.stored, expanded + other.expanded, tasks + other.tasks)

  /** Likely bytes of the rows that one task puts out, uncompressed. The upper end is far above most files. */
  def perTask: Long = {
    val likely = if (expanded.isBounded) expanded.high / OutputEstimate.HighToLikely else 0
    likely.max(expanded.low) / tasks.max(1)
  }

  /** Likely number of these rows. */
  def rowsPerTask(columns: Seq[Attribute]): Double = perTask / OutputEstimate.rowBytes(columns)

  /**
   * The estimate corrected by an earlier run. A run with the same literals replaces the estimate, and a run with
   * other literals can only raise its lower ends.
   */
  def corrected(run: Remembered): OutputEstimate =
    if (run.sameLiterals) copy(stored = ByteInterval.exactly(run.stored), expanded = ByteInterval.exactly(run.expanded))
    else copy(stored = stored.raisedTo(run.stored), expanded = expanded.raisedTo(run.expanded))

  def map(change: ByteInterval => ByteInterval): OutputEstimate =
    copy(stored = change(stored), expanded = change(expanded))
}

private[apportion] object OutputEstimate {
  private val Empty = OutputEstimate(ByteInterval.Zero, ByteInterval.Zero, 0)

  /** Maximum shuffle bytes per file byte of the columns that are read. */
  private val MaxForColumns = 16.0

  /** Maximum shuffle bytes per byte of whole files. */
  private val MaxForFiles = 2.0

  /** Ratio of the upper end to a likely value: the geometric mean of the lowest and the highest expansion of a file. */
  private val HighToLikely = 8

  /** Minimum shuffle bytes per byte of text files, which can be larger than the shuffle of their rows. */
  private val MinForText = 0.25

  /**
   * Minimum fraction of rows that is left after a filter, an aggregate or an inner join: an assumption for the lower
   * end.
   */
  private val MinLeft = 1.0 / 8

  /** Estimate for the output of a plan. */
  def of(plan: SparkPlan): OutputEstimate = plan match {
    case _: BroadcastExchangeLike | _: BroadcastQueryStageExec         => Empty
    case stage: ShuffleQueryStageExec if stage.isMaterialized          => ofFinished(stage)
    case stage: ShuffleQueryStageExec                                  => of(stage.shuffle.child)
    case ReusedExchangeExec(_, exchange)                               => of(exchange)
    case stage: QueryStageExec                                         => of(stage.plan)
    case leaf if leaf.children.isEmpty                                 => ofLeaf(leaf)
    case join: HashJoin                                                => ofJoin(join)
    case join: SortMergeJoinExec                                       => ofJoin(join)
    case join: BroadcastNestedLoopJoinExec if keepsLeft(join.joinType) => ofLeftOnly(join, of(join.left))
    case _: ProjectExec | _: EvalPythonExec | _: WindowExec | _: BaseAggregateExec | _: ExpandExec =>
      val child = of(plan.children.head)
      val wider = widened(plan, child)
      plan match {
        case expand: ExpandExec   => wider.map(_.scaled(expand.projections.size, expand.projections.size))
        case _: BaseAggregateExec => reduced(wider)
        case _                    => wider
      }
    case sample: SampleExec =>
      of(sample.child).map(_.scaled(0, if (sample.withReplacement) sample.upperBound.max(1) * 2 else 1))
    case _: FilterExec | _: WindowGroupLimitExec                               => reduced(of(plan.children.head))
    case _: BaseLimitExec | _: CollectLimitExec | _: TakeOrderedAndProjectExec =>
      of(plan.children.head).map(_.scaled(0, 1))
    case KeepsRows(child) => of(child)
    case _: UnionExec     => sum(plan.children)
    case other            => sum(other.children).map(_ => ByteInterval.Unknown)
  }

  /** Estimate for several plans together. */
  def sum(plans: Seq[SparkPlan]): OutputEstimate = plans.map(of).foldLeft(Empty)(_ + _)

  /** Bytes of all leaves of known size below a plan, also below stages that have not finished. */
  def leafBytes(plan: SparkPlan): Long = plan match {
    case stage: QueryStageExec         => leafBytes(stage.plan)
    case reused: ReusedExchangeExec    => leafBytes(reused.child)
    case leaf if leaf.children.isEmpty => statistics(leaf).getOrElse(0L)
    case other                         => other.children.map(leafBytes).foldLeft(0L)(Bytes.add)
  }

  private object KeepsRows {
    def unapply(plan: SparkPlan): Option[SparkPlan] = plan match {
      case _: SortExec | _: InputAdapter | _: WholeStageCodegenExec | _: ColumnarToRowExec | _: RowToColumnarExec |
          _: AQEShuffleReadExec | _: CoalesceExec | _: CollectMetricsExec | _: ShuffleExchangeLike =>
        plan.children.headOption
      case _ => None
    }
  }

  private def reduced(output: OutputEstimate): OutputEstimate = output.map(_.scaled(MinLeft, 1))

  private def ofFinished(stage: ShuffleQueryStageExec): OutputEstimate = {
    val stored = RowSizeRatio.stored(stage)
    val expanded = (stored * RowSizeRatio.of(stage)).toLong
    val mapTasks = tasks(stage, stored).min(stage.shuffle.outputPartitioning.numPartitions.toLong)
    OutputEstimate(ByteInterval.exactly(stored), ByteInterval.exactly(expanded), mapTasks)
  }

  /**
   * If the keys of one side are unique, each row of the other side comes out at most once, plus one row of the unique
   * side.
   */
  private def ofJoin(join: BaseJoinExec): OutputEstimate = {
    val (left, right) = (of(join.left), of(join.right))
    if (keepsLeft(join.joinType)) ofLeftOnly(join, left)
    else {
      val sides = Seq((join.left, join.right, join.rightKeys), (join.right, join.left, join.leftKeys))
      val growths =
        for ((kept, unique, keys) <- sides; wider <- widestRow(unique, keys)) yield 1 + wider / narrowestRow(kept)
      val isInner = join.joinType.isInstanceOf[InnerLike]
      // An outer join adds columns of NULL to rows of either side.
      val nulls =
        if (isInner) Nil else sides.map { case (kept, other, _) => 1 + narrowestRow(other) / narrowestRow(kept) }
      (left + right).map { bytes =>
        val bounded = bytes.scaled(if (isInner) MinLeft else 0.5, (growths.minOption ++ nulls).foldLeft(1.0)(_ max _))
        if (growths.isEmpty) bounded.unbounded else bounded
      }
    }
  }

  /**
   * Maximum bytes of a row of a side with unique keys; `None` if the keys may not be unique or the row has no bound.
   */
  private def widestRow(side: SparkPlan, keys: Seq[Expression]): Option[Double] = side match {
    case stage: BroadcastQueryStageExec if stage.isMaterialized =>
      BuildRows.widestIfUnique(stage).map(_.toDouble)
    case _ =>
      val isUnique = logicalPlan(side).exists(_.distinctKeys.exists(_.subsetOf(ExpressionSet(keys))))
      Option.when(isUnique && !side.output.exists(column => isVariable(column.dataType)))(rowBytes(side.output))
  }

  /** Minimum bytes of a row: an `UnsafeRow` has one word of NULL bits per 64 columns, and one word per column. */
  private def narrowestRow(plan: SparkPlan): Double = 8.0 * (1 + plan.output.size)

  private def ofLeftOnly(join: BaseJoinExec, left: OutputEstimate): OutputEstimate = {
    val wider = (rowBytes(join.output) / rowBytes(join.left.output)).max(1)
    left.map(_.scaled(if (join.joinType.isInstanceOf[ExistenceJoin]) 1 else MinLeft, wider))
  }

  private def keepsLeft(joinType: JoinType): Boolean = joinType match {
    case LeftExistence(_) => true
    case _                => false
  }

  /** The logical plan of the nearest operator that has one: exchanges and sorts that Spark adds have none. */
  private def logicalPlan(plan: SparkPlan): Option[LogicalPlan] =
    plan.collectFirst { case node if node.logicalLink.isDefined => node.logicalLink.get }.map {
      case stage: LogicalQueryStage => stage.logicalPlan
      case other                    => other
    }

  /** The estimate of an operator's child, changed by the columns that the operator adds, drops and computes. */
  private def widened(plan: SparkPlan, child: OutputEstimate): OutputEstimate = {
    val ratio = rowBytes(plan.output) / rowBytes(plan.children.head.output)
    child.map { bytes =>
      // The dropped columns may be the small ones, so they do not lower the upper end.
      val scaled = bytes.scaled(ratio.min(1), ratio.max(1))
      if (plan.expressions.forall(isSizeBounded)) scaled else scaled.unbounded
    }
  }

  /** Whether the inputs of an expression bound the size of its value. */
  private def isSizeBounded(expression: Expression): Boolean =
    if (!isVariable(expression.dataType)) true
    else
      expression match {
        case _: Attribute | _: Literal => true
        case _: UserDefinedExpression  => false
        case _: Alias | _: Cast | _: Substring | _: Upper | _: Lower | _: String2TrimExpression | _: Coalesce | _: If |
            _: CaseWhen | _: GetStructField | _: GetArrayItem | _: CreateNamedStruct | _: CreateArray | _: Concat |
            _: SortOrder | _: WindowExpression =>
          expression.children.forall(isSizeBounded)
        case aggregate: AggregateExpression =>
          !aggregate.aggregateFunction.isInstanceOf[UserDefinedExpression] &&
          aggregate.aggregateFunction.children.forall(isSizeBounded)
        case _ => false
      }

  private def isVariable(dataType: DataType): Boolean = dataType match {
    case _: StringType | BinaryType | _: ArrayType | _: MapType => true
    case struct: StructType                                     => struct.exists(field => isVariable(field.dataType))
    case other                                                  => other.defaultSize > FixedSize
  }

  /** Maximum bytes of a value of a fixed-size type, decimals included. */
  private val FixedSize = 16

  private def ofLeaf(leaf: SparkPlan): OutputEstimate = leaf match {
    case scan: FileSourceScanExec             => ofFiles(scan)
    case _: LocalTableScanExec | _: RangeExec =>
      output(leaf, statistics(leaf), bytes => ByteInterval((bytes * MinLeft).toLong, bytes))
    case scan: BatchScanExec if scan.scan.isInstanceOf[FileScan] =>
      output(leaf, statistics(leaf), ofColumns(_, MinForText))
    case cached: InMemoryTableScanExec if cached.relation.cacheBuilder.isCachedColumnBuffersLoaded =>
      val part = rowBytes(cached.output) / rowBytes(cached.relation.output)
      val bytes = (cached.relation.computeStats().sizeInBytes.toDouble * part).toLong
      output(cached, Some(bytes), ofColumns(_, MinForText))
    // Statistics of a catalog or of another source may be old or a guess, so they give no upper bound.
    case other => output(other, statistics(other), ofColumns(_, MinForText)).map(_.unbounded)
  }

  /**
   * Estimate from the size of the files. Only the columns' types show which part of the files a scan reads, and a few
   * text columns can be most of a file. The size in a [[CatalogFileIndex]] is a statistic of the catalog and may be
   * old.
   */
  private def ofFiles(scan: FileSourceScanExec): OutputEstimate = {
    val relation = scan.relation
    val part = (rowBytes(scan.output) / rowBytes(toAttributes(relation.schema))).min(1)
    val hasText = scan.output.exists(column => isVariable(column.dataType))
    val known = Some(relation.location.sizeInBytes).filter(_ < scan.conf.defaultSizeInBytes)
    val estimate = output(
      scan,
      known,
      files => {
        val minFactor = minFactorOf(relation.fileFormat) * (if (scan.partitionFilters.isEmpty) 1 else MinLeft)
        val columns = ofColumns((files * part).toLong, minFactor)
        if (hasText) columns.copy(high = columns.high.max((files * MaxForFiles).toLong)) else columns
      }
    )
    if (relation.location.isInstanceOf[CatalogFileIndex]) estimate.map(_.unbounded) else estimate
  }

  private def minFactorOf(format: FileFormat): Double = format match {
    case _: ParquetFileFormat | _: OrcFileFormat => 1.0
    case _                                       => MinForText
  }

  private def ofColumns(bytes: Long, minFactor: Double): ByteInterval =
    ByteInterval((bytes * minFactor).toLong, (bytes * MaxForColumns).toLong)

  private def output(leaf: SparkPlan, bytes: Option[Long], interval: Long => ByteInterval): OutputEstimate = {
    val stored = bytes.fold(ByteInterval.Unknown)(interval)
    OutputEstimate(stored, stored.scaled(1, RowSizeRatio.OfFiles), bytes.fold(1L)(tasks(leaf, _)))
  }

  /** Bytes that a leaf reads by Spark's statistics; `None` if they are unknown. */
  private def statistics(leaf: SparkPlan): Option[Long] = for {
    logical <- leaf.logicalLink
    bytes = logical.stats.sizeInBytes
    if bytes < leaf.conf.defaultSizeInBytes
  } yield
    // The logical plan may be a projection of the leaf's columns.
    math.ceil(bytes.toDouble * rowBytes(leaf.output) / rowBytes(logical.output)).toLong

  private def toAttributes(schema: StructType): Seq[Attribute] =
    schema.map(field => AttributeReference(field.name, field.dataType)())

  private def rowBytes(columns: Seq[Attribute]): Double = EstimationUtils.getSizePerRow(columns).toDouble

  private def tasks(plan: SparkPlan, bytes: Long): Long = bytes / plan.conf.filesMaxPartitionBytes.max(1) + 1
}
