package io.apportion.groups

import java.security.CodeSource

import io.apportion.settings.Settings
import org.apache.spark.apportion.ShuffleReads
import org.apache.spark.sql.apportion.exchange.KeySplitExec
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.physical.{BroadcastDistribution, UnspecifiedDistribution}
import org.apache.spark.sql.execution.{ProjectExec, SortExec, SparkPlan}
import org.apache.spark.sql.execution.exchange._
import org.apache.spark.sql.execution.joins._
import org.apache.spark.sql.internal.SQLConf

/**
 * Shuffles of a group whose partitions tasks may read in parts. A part is the rows of some map tasks in one shuffle
 * partition. These are the sides of a join that Spark also splits for skew, the input of a rebalance, and a shuffle
 * whose join became another kind of join.
 *
 * @param leaves   indexes of these shuffles in the group
 * @param notSplit reason why tasks read whole partitions of the other shuffles
 */
private[apportion] final case class Splittable(leaves: Set[Int], notSplit: NotSplit)

/**
 * Reason why tasks read whole shuffle partitions.
 *
 * @param kind reason as a word for programs; event logs contain it
 * @param text reason for people
 */
private[apportion] final case class NotSplit(kind: String, text: String)

private[apportion] object Splittable {

  /**
   * Shuffles of a group that tasks may read in parts.
   *
   * @param reader  operator that reads all shuffles of the group
   * @param keeping operator that needs the output partitions of the reader, if there is one
   */
  def of(reader: SparkPlan, leaves: Seq[ShuffleLeaf], keeping: Option[SparkPlan]): Splittable = {
    def isOff(key: String) =
      Option.when(!reader.conf.getConfString(key).toBoolean)(NotSplit("switched-off", s"$key is false"))
    def whole(reason: NotSplit) = Splittable(Set.empty, reason)
    def forbidden(keeping: Option[SparkPlan]) = keeping
      .map(whyKept)
      .orElse(whyNoMapRanges(reader.conf).map(NotSplit("shuffle-manager", _)))
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
      case _ => whole(keeping.fold(RowsTogether)(whyKept))
    }
  }

  /**
   * Whether an operator needs a partitioning of its input. An unknown operator may need one that it does not declare:
   * the aggregates and joins of Comet have no `requiredChildDistribution`.
   */
  def needsPartitions(node: SparkPlan): Boolean = !isKnown(node) || node.requiredChildDistribution.exists {
    case UnspecifiedDistribution | _: BroadcastDistribution => false
    case _                                                  => true
  }

  /** Reason why tasks do not read only some map outputs, if the shuffle manager is not Spark's own. */
  def whyNoMapRanges(conf: SQLConf): Option[String] = ShuffleReads.otherManager.flatMap { manager =>
    if (!Settings.SplitsWithOtherShuffleManagers.get(conf))
      Some(s"reading only some map outputs may be slow with the shuffle manager ${manager.split('.').last}")
    else Option.when(conf.getConfString(RangeCheck, "false").toBoolean)(s"$RangeCheck is true")
  }

  /** Celeborn then fails a read whose range of map outputs overlaps that of an earlier read (0.6.1 and later). */
  private val RangeCheck = "spark.celeborn.client.shuffle.integrityCheck.enabled"

  private def whyKept(node: SparkPlan): NotSplit = {
    val name = ExchangeGroup.operatorName(node)
    if (isKnown(node)) NotSplit("operator", s"$name reads all rows of a key in one task")
    else NotSplit("unknown-operator", s"$name may not work on parts of partitions")
  }

  /**
   * Whether an operator declares every distribution that it needs, as all of Spark's own do. Other engines put operators into
   * packages of Spark too, but not into its jar.
   */
  def isKnown(node: SparkPlan): Boolean = node.getClass match {
    case own if own == classOf[KeySplitExec] => true
    case other => other.getName.startsWith(SparkOperators) && sourceOf(other) == sourceOf(classOf[ProjectExec])
  }

  private val SparkOperators = classOf[SparkPlan].getPackage.getName + "."

  private def sourceOf(operator: Class[_]): CodeSource = operator.getProtectionDomain.getCodeSource

  /** For partitions that the query asks for, also by a repartition that Spark drops. */
  val AsAsked: Splittable =
    Splittable(Set.empty, NotSplit("query", "the result has to keep the partitions that the query asks for"))

  private val RowsTogether = NotSplit("operator", "the rows of a partition must stay together")

  private def tooCoarse(alsoWhole: String = "") =
    NotSplit("coarse-map-outputs", s"the map outputs are too coarse$alsoWhole")

  private val all = Splittable(Set(0), tooCoarse())

  private def sidesOf(joinType: JoinType): Splittable = joinType match {
    case _: InnerLike => Splittable(Set(0, 1), tooCoarse())
    // Spark's own rule (`OptimizeSkewedJoin`) leaves out ExistenceJoin, which is `x IN (subquery) OR condition`.
    case LeftOuter | LeftExistence(_) => Splittable(Set(0), tooCoarse(", and the right side is read whole"))
    case RightOuter                   => Splittable(Set(1), tooCoarse(", and the left side is read whole"))
    case other => Splittable(Set.empty, NotSplit("join-type", s"a ${other.sql} JOIN reads both sides whole"))
  }
}

/** Matches a join of two shuffles that can run on parts of shuffle partitions. */
private[apportion] object SkewJoin {

  def unapply(plan: SparkPlan): Option[(ShuffledJoin, Seq[ShuffleLeaf])] = plan match {
    case join: SortMergeJoinExec    => sides(join)
    case join: ShuffledHashJoinExec => sides(join)
    case _                          => None
  }

  /** Copy of a join that no longer requires whole partitions of its sides. */
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
