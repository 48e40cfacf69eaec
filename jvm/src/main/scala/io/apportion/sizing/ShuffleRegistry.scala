package io.apportion.sizing

import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.sql.catalyst.expressions.SubqueryExpression
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, LogicalPlan}
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.LogicalQueryStage

/**
 * The numbers of partitions that were chosen in a query execution, by its main plan and its subqueries. Spark runs equal exchanges of
 * these plans once, and prunes partitions by a broadcast of the main plan, only if the numbers in them are equal. The first choice for
 * an exchange stays.
 *
 * @param shared logical plans that occur in more than one of these plans
 */
private[apportion] final class ShuffleRegistry(shared: Set[LogicalPlan]) {
  private val numbers = new ConcurrentHashMap[ShuffleKey, Integer]

  /** The number that was chosen for equal exchanges. */
  def number(key: ShuffleKey): Option[Int] = Option(numbers.get(key)).map(_.intValue)

  /** Remembers the number of an exchange, if it is the first one. */
  def choose(key: ShuffleKey, n: Int): Unit = numbers.putIfAbsent(key, n)

  /**
   * Whether an exchange over this plan can occur in another plan of the query as well. An aggregate shuffles all of its groups and
   * partial results, whichever of them it puts out.
   */
  def isShared(plan: LogicalPlan): Boolean = shared.nonEmpty && (shared(plan.canonicalized) || (plan match {
    case aggregate: Aggregate => shared(aggregate.child.canonicalized)
    case _                    => false
  }))
}

private[apportion] object ShuffleRegistry {
  private val Tag = TreeNodeTag[ShuffleRegistry]("apportion.shuffleRegistry")

  /** The registry of the query that a plan belongs to; a new one if the plan was made without Spark's planner. */
  def of(plan: SparkPlan): ShuffleRegistry = plan
    .collectFirst { case node if node.logicalLink.exists(find(_).isDefined) => find(node.logicalLink.get).get }
    .getOrElse(new ShuffleRegistry(Set.empty))

  /** Gives a plan and its subqueries one registry, unless they have one: Spark plans subqueries, and plans again, later. */
  def attach(plan: LogicalPlan): Unit = if (plan.collectFirst { case node if find(node).isDefined => node }.isEmpty) {
    val plans = plan +: subqueries(plan)
    val registry = new ShuffleRegistry(if (plans.size > 1) occurringTwice(plans) else Set.empty)
    // Not on leaves, which other queries may have as well.
    plans.foreach(_.foreach(node => if (node.children.nonEmpty) node.setTagValue(Tag, registry)))
  }

  private def find(node: LogicalPlan): Option[ShuffleRegistry] = node
    .getTagValue(Tag)
    .orElse(node match {
      case stage: LogicalQueryStage => stage.logicalPlan.getTagValue(Tag)
      case _                        => None
    })

  private def subqueries(plan: LogicalPlan): Seq[LogicalPlan] = plan
    .collect { case node => node.expressions.flatMap(_.collect { case subquery: SubqueryExpression => subquery.plan }) }
    .flatten
    .flatMap(subquery => subquery +: subqueries(subquery))

  private def occurringTwice(plans: Seq[LogicalPlan]): Set[LogicalPlan] =
    plans
      .flatMap(plan => plan.collect { case node => node.canonicalized }.distinct)
      .groupBy(identity)
      .collect { case (canonical, places) if places.size > 1 => canonical }
      .toSet
}
