package io.apportion.groups

import io.apportion.decision.ranges.Bytes
import io.apportion.hints.{BlockHints, OperatorBlock}
import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildSide}
import org.apache.spark.sql.catalyst.plans.physical.{UnknownPartitioning, UnspecifiedDistribution}
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.{BroadcastQueryStageExec, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.exchange.{BroadcastExchangeLike, Exchange}
import org.apache.spark.sql.execution.joins.{BroadcastHashJoinExec, BroadcastNestedLoopJoinExec, CartesianProductExec}

/**
 * Shuffles that have to be read with the same ranges, such as both sides of a sort-merge join.
 *
 * @param consumers     the operators that read them in turn; the first is the one that reads all of them
 * @param inner         the operators below that one which read some of them
 * @param broadcasts    broadcast stages that the tasks of this group read as well
 * @param multipliesRows whether the tasks run a join whose input bytes say little of its work
 * @param splittable    which of the shuffles may be read in parts of subpartitions
 * @param forbidden     why the group has to be left alone, if so
 * @param keepsCount    why its shuffles keep Spark's number of partitions, if so; their ranges may be decided all the same
 */
final case class ExchangeGroup(
    leaves: Seq[ShuffleLeaf],
    consumers: Seq[SparkPlan],
    inner: Seq[SparkPlan],
    broadcasts: Seq[BroadcastQueryStageExec],
    multipliesRows: Boolean,
    splittable: Splittable,
    forbidden: Option[String],
    keepsCount: Option[String] = None
) {

  /** What reads them, as the plan calls it. */
  def operator: String = consumers.headOption.fold("Output")(ExchangeGroup.operatorName)

  /** What hints say for it: those of the block whose operator reads all, then those of other blocks that share the stage. */
  lazy val hints: BlockHints = {
    val outermost = if (consumers.isEmpty) leaves.map(leaf => leaf.stage.getOrElse(leaf.node)) else consumers
    OperatorBlock.ofEach(outermost +: inner.map(Seq(_))).map(_.hints).foldLeft(BlockHints.none)(_ orElse _)
  }

  /** The stages of the group, once they run. */
  def stages: Seq[ShuffleQueryStageExec] = leaves.flatMap(_.stage)

  /** The bytes of each stage's subpartitions, once they have finished. */
  lazy val bytes: Seq[Array[Long]] = leaves.flatMap(_.bytes)

  lazy val inputBytes: Long = bytes.foldLeft(0L)((sum, stage) => Bytes.add(sum, Bytes.sum(stage)))
}

/**
 * Finds the groups of a plan fragment, down to its exchanges. Operators that do not match their children's partitions (union,
 * cartesian product, broadcast joins) part groups; all others join what is below them into one.
 */
object ExchangeGroup {

  def collect(plan: SparkPlan): Seq[ExchangeGroup] = descend(plan, Path())

  /** What lies between the root of the fragment and a node. */
  private case class Path(
      consumers: List[SparkPlan] = Nil,
      broadcasts: Seq[BroadcastQueryStageExec] = Nil,
      multipliesRows: Boolean = false,
      partitioningMatters: Boolean = false,
      keeping: Option[SparkPlan] = None,
      forbidden: Option[String] = None,
      keepsCount: Option[String] = None
  ) {
    def through(node: SparkPlan): Path = copy(
      consumers = if (isTransparent(node)) consumers else node :: consumers,
      broadcasts = broadcasts ++ broadcastsBelow(node),
      multipliesRows = multipliesRows || multiplies(node),
      partitioningMatters = partitioningMatters || node.requiredChildDistribution.exists(_ != UnspecifiedDistribution),
      keeping = if (Splittable.needsPartitions(node)) Some(node) else keeping,
      forbidden = forbidden.orElse(UserRepartitions.pinned(node)),
      keepsCount = keepsCount.orElse(UserRepartitions.keepsCount(node))
    )
  }

  private def descend(node: SparkPlan, path: Path): Seq[ExchangeGroup] = node match {
    case ShuffleLeaf(_)          => Seq(group(Seq(node), path, path.keeping))
    case _: Exchange             => Nil
    case unary: UnaryExecNode    => descend(unary.child, path.through(node))
    case BroadcastJoin(streamed) => descend(streamed, path.through(node))
    case _: CartesianProductExec => node.children.flatMap(descend(_, path.through(node)))
    case union: UnionExec if !(path.partitioningMatters && keepsPartitioning(union)) =>
      union.children.flatMap(descend(_, path.through(node)))
    case _ =>
      val nodes = nodesOf(node)
      if (nodes.exists(ShuffleLeaf.unapply(_).isDefined)) Seq(group(nodes, path.through(node), path.keeping))
      else Nil
  }

  /**
   * @param nodes   what reads all its shuffles, and all below that
   * @param keeping the nearest operator above that needs the partitions as they are
   */
  private def group(nodes: Seq[SparkPlan], path: Path, keeping: Option[SparkPlan]): ExchangeGroup = {
    val (leaves, operators) = nodes.partition(isLeaf)
    val shuffles = leaves.collect { case ShuffleLeaf(leaf) => leaf }
    val counts = shuffles.map(_.subpartitions).distinct.sorted
    val forbidden = path.forbidden
      .orElse(shuffles.flatMap(_.forbids).headOption)
      .orElse(leaves.collectFirst {
        case leaf if isNoExchange(leaf) => s"${leaf.nodeName} is no exchange, and its partitions have to be matched"
      })
      .orElse(
        Option.when(counts.size > 1)(s"its stages have different numbers of subpartitions: ${counts.mkString(", ")}")
      )
    ExchangeGroup(
      leaves = shuffles,
      consumers = path.consumers,
      inner = operators.drop(1).filterNot(isTransparent),
      broadcasts = (path.broadcasts ++ operators.flatMap(broadcastsBelow)).distinctBy(_.id),
      multipliesRows = path.multipliesRows || operators.exists(multiplies),
      splittable = Splittable.of(nodes.head, shuffles, keeping),
      forbidden = forbidden,
      keepsCount = path.keepsCount.orElse(operators.flatMap(keepsCount).headOption)
    )
  }

  /**
   * Why the shuffles that an operator reads keep Spark's number. The children of a partition-aware union (Spark 4.1 and later) may be
   * started at different times, and a plan in which their numbers differ needs one more exchange.
   */
  private def keepsCount(operator: SparkPlan): Option[String] = operator match {
    case _: UnionExec => Some("a union keeps the partitions of its children, which have to agree")
    case other        => UserRepartitions.keepsCount(other)
  }

  /** What tasks run from a node down to the exchanges and other leaves that they read; not what is broadcast to them. */
  private def nodesOf(node: SparkPlan): Seq[SparkPlan] = node match {
    case leaf if isLeaf(leaf)    => Seq(leaf)
    case BroadcastJoin(streamed) => node +: nodesOf(streamed)
    case _                       => node +: node.children.flatMap(nodesOf)
  }

  private def isLeaf(node: SparkPlan): Boolean = node match {
    case ShuffleLeaf(_) | _: Exchange => true
    case _                            => node.children.isEmpty
  }

  private def isNoExchange(leaf: SparkPlan): Boolean = leaf match {
    case ShuffleLeaf(_) | _: BroadcastQueryStageExec | _: BroadcastExchangeLike => false
    case _                                                                      => true
  }

  private def broadcastsBelow(node: SparkPlan): Seq[BroadcastQueryStageExec] =
    node.children.collect { case broadcast: BroadcastQueryStageExec => broadcast }

  /** From Spark 4.1 on the rows of a union stay partitioned where all its children agree. */
  private def keepsPartitioning(union: UnionExec): Boolean = !union.outputPartitioning.isInstanceOf[UnknownPartitioning]

  private def multiplies(node: SparkPlan): Boolean =
    node.isInstanceOf[CartesianProductExec] || node.isInstanceOf[BroadcastNestedLoopJoinExec]

  /** Operators that nobody would name as what reads a shuffle. */
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
