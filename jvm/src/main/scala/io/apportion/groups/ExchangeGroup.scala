package io.apportion.groups

import io.apportion.decision.ranges.Bytes
import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildSide}
import org.apache.spark.sql.catalyst.plans.physical.{HashPartitioning, UnknownPartitioning, UnspecifiedDistribution}
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.{BroadcastQueryStageExec, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.exchange._
import org.apache.spark.sql.execution.joins.{BroadcastHashJoinExec, BroadcastNestedLoopJoinExec, CartesianProductExec}

/**
 * Shuffles that tasks must read with the same ranges, such as both sides of a sort-merge join. Apportion makes one
 * decision per group.
 *
 * @param leaves         leaves of the plan fragment that read these shuffles
 * @param root           operator that reads all shuffles, or the only leaf
 * @param above          operators above the root that the same tasks run, from the bottom up
 * @param consumers      operators above the leaves, from the bottom up; the first one reads all shuffles
 * @param inner          operators below the first consumer, which read some of the shuffles
 * @param broadcasts     broadcast stages that the tasks of the group also read
 * @param multipliesRows whether the tasks run a join that multiplies rows, so that input bytes do not show its work
 * @param splittable     shuffles whose subpartitions may be split between tasks
 * @param forbidden      reason why Apportion must leave the group unchanged, if there is one
 * @param keepsCount     whether the shuffles keep Spark's number of partitions; Apportion may still decide their ranges
 */
final case class ExchangeGroup(
    leaves: Seq[ShuffleLeaf],
    root: SparkPlan,
    above: Seq[SparkPlan],
    consumers: Seq[SparkPlan],
    inner: Seq[SparkPlan],
    broadcasts: Seq[BroadcastQueryStageExec],
    multipliesRows: Boolean,
    splittable: Splittable,
    forbidden: Option[String],
    keepsCount: Boolean = false
) {

  /** Name of the operator that reads the shuffles, as the plan shows it. */
  def operator: String = consumers.headOption.fold("Output")(ExchangeGroup.operatorName)

  /** The shuffle of the group, if it has only one. */
  def single: Option[ShuffleExchangeLike] = Option.when(leaves.size == 1)(leaves.head.shuffle)

  /** Whether the query asks for partitions of a size. */
  def isRebalance: Boolean = single.map(_.shuffleOrigin).exists(ExchangeGroup.Rebalances)

  /**
   * Whether tasks may read the rows of some keys of a partition. Spark's operators need the rows of a key together, and
   * no more.
   */
  lazy val hasKeys: Boolean = leaves.forall { leaf =>
    leaf.shuffle.shuffleOrigin == ENSURE_REQUIREMENTS && leaf.shuffle.outputPartitioning.isInstanceOf[HashPartitioning]
  } && (root +: (consumers ++ above ++ inner)).forall(Splittable.isKnown)

  /** Stages of the shuffles that have started. */
  def stages: Seq[ShuffleQueryStageExec] = leaves.flatMap(_.stage)

  /** Bytes of each subpartition, for each stage that has finished. */
  lazy val bytes: Seq[Array[Long]] = leaves.flatMap(_.bytes)

  /** Bytes of all these stages. */
  lazy val inputBytes: Long = bytes.foldLeft(0L)((sum, stage) => Bytes.add(sum, Bytes.sum(stage)))
}

/**
 * Finds the groups of a plan fragment, down to its exchanges. An operator with several children puts all shuffles
 * below it into one group, because it matches the partitions of its children. Unions, Cartesian products and
 * broadcast joins do not match partitions, so they separate groups.
 */
object ExchangeGroup {
  private val Rebalances = Set[ShuffleOrigin](REBALANCE_PARTITIONS_BY_NONE, REBALANCE_PARTITIONS_BY_COL)

  /** Groups that the tasks at the root of this plan read. */
  def collect(plan: SparkPlan): Seq[ExchangeGroup] = descend(plan, Nil)

  /** @param above operators between the root of the fragment and the node, from the bottom up */
  private def descend(node: SparkPlan, above: List[SparkPlan]): Seq[ExchangeGroup] = node match {
    case ShuffleLeaf(_)          => Seq(group(Seq(node), above))
    case _: Exchange             => Nil
    case unary: UnaryExecNode    => descend(unary.child, node :: above)
    case BroadcastJoin(streamed) => descend(streamed, node :: above)
    case _: CartesianProductExec => node.children.flatMap(descend(_, node :: above))
    case union: UnionExec if !(above.exists(needsDistribution) && keepsPartitioning(union)) =>
      union.children.flatMap(descend(_, node :: above))
    case _ =>
      val nodes = nodesOf(node)
      if (nodes.exists(ShuffleLeaf.unapply(_).isDefined)) Seq(group(nodes, above)) else Nil
  }

  /**
   * @param nodes operator that reads all shuffles of the group, then all nodes below it; or the only leaf
   * @param above operators above these nodes, from the bottom up
   */
  private def group(nodes: Seq[SparkPlan], above: List[SparkPlan]): ExchangeGroup = {
    val (leaves, operators) = nodes.partition(isLeaf)
    val path = operators.headOption.toList ++ above
    val shuffles = leaves.collect { case ShuffleLeaf(leaf) => leaf }
    val counts = shuffles.map(_.subpartitions).distinct.sorted
    val isAsAsked = path.exists(UserRepartitions.matches)
    val forbidden = path.reverse
      .flatMap(UserRepartitions.pinned(_))
      .headOption
      .orElse(shuffles.flatMap(_.forbids).headOption)
      .orElse(leaves.collectFirst {
        case leaf if !isExchange(leaf) =>
          s"${leaf.nodeName} is not an exchange, and the other inputs must match its partitions"
      })
      .orElse(
        Option.when(counts.size > 1)(s"its stages have different numbers of partitions: ${counts.mkString(", ")}")
      )
    ExchangeGroup(
      leaves = shuffles,
      consumers = path.filterNot(isTransparent),
      inner = operators.drop(1).filterNot(isTransparent),
      broadcasts = (path ++ operators).flatMap(broadcastsBelow).distinctBy(_.id),
      multipliesRows = (path ++ operators).exists(multiplies),
      splittable =
        if (isAsAsked) Splittable.AsAsked
        else Splittable.of(nodes.head, shuffles, above.find(Splittable.needsPartitions)),
      forbidden = forbidden,
      root = nodes.head,
      above = above,
      keepsCount = isAsAsked || operators.exists(keepsCount)
    )
  }

  /**
   * Whether the shuffles below an operator keep Spark's number of partitions. Spark may start the children of a
   * partition-aware union (Spark 4.1 and later) at different times. If their numbers differ, the plan needs one more
   * exchange.
   */
  private def keepsCount(operator: SparkPlan): Boolean =
    operator.isInstanceOf[UnionExec] || UserRepartitions.matches(operator)

  /**
   * Nodes that the same tasks run, from a node down to exchanges and other leaves; without the broadcast sides of
   * joins.
   */
  private def nodesOf(node: SparkPlan): Seq[SparkPlan] = node match {
    case leaf if isLeaf(leaf)    => Seq(leaf)
    case BroadcastJoin(streamed) => node +: nodesOf(streamed)
    case _                       => node +: node.children.flatMap(nodesOf)
  }

  private def isLeaf(node: SparkPlan): Boolean = node match {
    case ShuffleLeaf(_) | _: Exchange => true
    case _                            => node.children.isEmpty
  }

  private def isExchange(leaf: SparkPlan): Boolean = leaf match {
    case ShuffleLeaf(_) | _: BroadcastQueryStageExec | _: BroadcastExchangeLike => true
    case _                                                                      => false
  }

  private def needsDistribution(operator: SparkPlan): Boolean =
    operator.requiredChildDistribution.exists(_ != UnspecifiedDistribution)

  private def broadcastsBelow(node: SparkPlan): Seq[BroadcastQueryStageExec] =
    node.children.collect { case broadcast: BroadcastQueryStageExec => broadcast }

  /** From Spark 4.1 on, a union keeps the partitioning of its children if all of them have the same. */
  private def keepsPartitioning(union: UnionExec): Boolean = !union.outputPartitioning.isInstanceOf[UnknownPartitioning]

  private def multiplies(node: SparkPlan): Boolean =
    node.isInstanceOf[CartesianProductExec] || node.isInstanceOf[BroadcastNestedLoopJoinExec]

  /** Whether an operator is skipped when a group is named after the operator that reads it. */
  private def isTransparent(node: SparkPlan): Boolean = node match {
    case _: ProjectExec | _: FilterExec | _: UnionExec | _: InputAdapter | _: WholeStageCodegenExec => true
    case sort: SortExec                                                                             => !sort.global
    case _                                                                                          => false
  }

  private[apportion] def operatorName(node: SparkPlan): String = node.nodeName.takeWhile(_.isLetterOrDigit)

  private object BroadcastJoin {
    def unapply(node: SparkPlan): Option[SparkPlan] = node match {
      case join: BroadcastHashJoinExec       => Some(streamed(join.buildSide, join.left, join.right))
      case join: BroadcastNestedLoopJoinExec => Some(streamed(join.buildSide, join.left, join.right))
      case _                                 => None
    }

    private def streamed(build: BuildSide, left: SparkPlan, right: SparkPlan): SparkPlan =
      if (build == BuildLeft) right else left
  }
}
