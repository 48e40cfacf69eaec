package io.apportion.groups

import io.apportion.settings.Settings
import org.apache.spark.apportion.ShuffleReads
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.physical.{BroadcastDistribution, UnspecifiedDistribution}
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadExec, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.aggregate.{HashAggregateExec, ObjectHashAggregateExec, SortAggregateExec}
import org.apache.spark.sql.execution.command.DataWritingCommandExec
import org.apache.spark.sql.execution.datasources.WriteFilesExec
import org.apache.spark.sql.execution.exchange._
import org.apache.spark.sql.execution.joins._
import org.apache.spark.sql.execution.python.{ArrowEvalPythonExec, BatchEvalPythonExec}
import org.apache.spark.sql.internal.SQLConf

/**
 * Which shuffles of a group tasks may read in parts, a subpartition's rows from some map tasks: the sides of a join that Spark
 * splits for skew as well, and what is rebalanced, or shuffled for a join that came to be another.
 *
 * @param leaves    by their place in the group
 * @param otherwise why the others have to be read whole
 */
private[apportion] final case class Splittable(leaves: Set[Int], otherwise: String)

private[apportion] object Splittable {

  /**
   * @param reader  the operator that reads all shuffles of the group
   * @param keeping the operator that needs the partitions of what the reader puts out, if there is one
   */
  def of(reader: SparkPlan, leaves: Seq[ShuffleLeaf], keeping: Option[SparkPlan]): Splittable = {
    def isOff(key: String) = Option.when(!reader.conf.getConfString(key).toBoolean)(s"$key is false")
    def whole(why: String) = Splittable(Set.empty, why)
    def forbidden(keeping: Option[SparkPlan]) =
      keeping.map(whyKept).orElse(otherManager(reader.conf).map(whyNoMapRanges))
    val keepingOrReader = keeping.orElse(Some(reader).filter(needsPartitions))

    (reader, leaves.map(_.shuffle.shuffleOrigin)) match {
      case (SkewJoin(join, _), _) =>
        forbidden(keeping).orElse(isOff(SQLConf.SKEW_JOIN_ENABLED.key)).fold(sidesOf(join.joinType))(whole)
      case (_, Seq(REBALANCE_PARTITIONS_BY_NONE | REBALANCE_PARTITIONS_BY_COL)) =>
        forbidden(keepingOrReader)
          .orElse(isOff(SQLConf.ADAPTIVE_OPTIMIZE_SKEWS_IN_REBALANCE_PARTITIONS_ENABLED.key))
          .fold(all)(whole)
      case (_, Seq(ENSURE_REQUIREMENTS)) if !reader.conf.getConf(SQLConf.LOCAL_SHUFFLE_READER_ENABLED) =>
        forbidden(keepingOrReader).orElse(isOff(SQLConf.SKEW_JOIN_ENABLED.key)).fold(all)(whole)
      case _ => whole(keeping.fold("its rows have to stay together")(whyKept))
    }
  }

  /**
   * Whether an operator needs its input partitioned in some way. An operator that is not known may need this without a declaration:
   * the aggregates and joins of Comet have no `requiredChildDistribution`.
   */
  def needsPartitions(node: SparkPlan): Boolean = !isKnown(node) || node.requiredChildDistribution.exists {
    case UnspecifiedDistribution | _: BroadcastDistribution => false
    case _                                                  => true
  }

  /** The shuffle manager if that is not Spark's own, unless a setting allows to read the output of some map tasks there. */
  def otherManager(conf: SQLConf): Option[String] =
    ShuffleReads.otherManager.filterNot(_ => Settings.SplitsWithOtherShuffleManagers.get(conf))

  /** Why the output of some map tasks is not read alone. */
  def whyNoMapRanges(manager: String): String =
    s"the output of some map tasks alone may be slow to read with the shuffle manager ${manager.split('.').last}"

  private def whyKept(node: SparkPlan): String = {
    val name = ExchangeGroup.operatorName(node)
    if (isKnown(node)) s"$name reads all rows of a key in one task"
    else s"$name is not known to work on parts of partitions"
  }

  private def isKnown(node: SparkPlan): Boolean = Known(node.getClass)

  /** Operators of Spark that declare each distribution that they need. */
  private val Known: Set[Class[_]] = Set(
    // Leaves and frames of generated code
    classOf[AQEShuffleReadExec],
    classOf[ShuffleQueryStageExec],
    classOf[InputAdapter],
    classOf[WholeStageCodegenExec],
    classOf[ColumnarToRowExec],
    classOf[RowToColumnarExec],
    // Row by row
    classOf[ProjectExec],
    classOf[FilterExec],
    classOf[SampleExec],
    classOf[ExpandExec],
    classOf[GenerateExec],
    classOf[BatchEvalPythonExec],
    classOf[ArrowEvalPythonExec],
    classOf[DeserializeToObjectExec],
    classOf[MapElementsExec],
    classOf[SerializeFromObjectExec],
    classOf[CollectMetricsExec],
    // Sorts, limits and aggregates
    classOf[SortExec],
    classOf[LocalLimitExec],
    classOf[GlobalLimitExec],
    classOf[CollectLimitExec],
    classOf[CollectTailExec],
    classOf[TakeOrderedAndProjectExec],
    classOf[HashAggregateExec],
    classOf[ObjectHashAggregateExec],
    classOf[SortAggregateExec],
    classOf[window.WindowExec],
    // Joins and unions
    classOf[SortMergeJoinExec],
    classOf[ShuffledHashJoinExec],
    classOf[BroadcastHashJoinExec],
    classOf[BroadcastNestedLoopJoinExec],
    classOf[CartesianProductExec],
    classOf[UnionExec],
    // Writes; Spark plans the query below a V2 command apart (`InsertAdaptiveSparkPlan`)
    classOf[WriteFilesExec],
    classOf[DataWritingCommandExec]
  )

  private val TooCoarse = "its map outputs give no parts that help"

  private val all = Splittable(Set(0), TooCoarse)

  private def sidesOf(joinType: JoinType): Splittable = joinType match {
    case _: InnerLike                    => Splittable(Set(0, 1), TooCoarse)
    case LeftOuter | LeftSemi | LeftAnti => Splittable(Set(0), s"$TooCoarse, and the right side is read whole")
    case RightOuter                      => Splittable(Set(1), s"$TooCoarse, and the left side is read whole")
    case FullOuter                       => Splittable(Set.empty, "full outer joins read both sides whole")
    case _                               => Splittable(Set.empty, "such joins read both sides whole")
  }
}

/** A join of two shuffles that Spark can run over parts of them. */
private[apportion] object SkewJoin {

  def unapply(plan: SparkPlan): Option[(ShuffledJoin, Seq[ShuffleLeaf])] = plan match {
    case join: SortMergeJoinExec    => sides(join)
    case join: ShuffledHashJoinExec => sides(join)
    case _                          => None
  }

  /** The same join, which does not ask for the partitions of its sides any more. */
  def marked(join: SparkPlan): SparkPlan = {
    val marked = join match {
      case join: SortMergeJoinExec    => join.copy(isSkewJoin = true)
      case join: ShuffledHashJoinExec => join.copy(isSkewJoin = true)
      case other                      => other
    }
    marked.copyTagsFrom(join)
    marked
  }

  private def sides(join: ShuffledJoin): Option[(ShuffledJoin, Seq[ShuffleLeaf])] = {
    val leaves = join.children.map {
      case SortExec(_, false, ShuffleLeaf(leaf), _) => Some(leaf)
      case ShuffleLeaf(leaf)                        => Some(leaf)
      case _                                        => None
    }
    Option.when(leaves.flatten.map(_.shuffle.shuffleOrigin) == Seq(ENSURE_REQUIREMENTS, ENSURE_REQUIREMENTS)) {
      (join, leaves.flatten)
    }
  }
}
