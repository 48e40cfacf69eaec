package io.apportion.sizing

import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.sql.catalyst.expressions.SubqueryExpression
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, LogicalPlan}
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.LogicalQueryStage

/**
 * Numbers of shuffle partitions that Apportion chose for a query, in its main plan and in its subqueries. Spark plans
 * these separately. It runs their equal exchanges once, and prunes partitions by a broadcast of the main plan, only
 * if the numbers in them are equal. So the first number of an exchange stays.
 *
 * @param shared logical plans that occur in more than one of these plans
 */
private[apportion] final class ShuffleRegistry(shared: Set[LogicalPlan]) {
  private val numbers = new ConcurrentHashMap[ShuffleKey, Integer]

  /** Number of partitions that was chosen for exchanges with this key. */
  def number(key: ShuffleKey): Option[Int] = Option(numbers.get(key)).map(_.intValue)

  /** Stores the number of partitions for this key, unless it already has one. */
  def choose(key: ShuffleKey, n: Int): Unit = numbers.putIfAbsent(key, n)

  /**
   * Whether an exchange over this plan can also occur in another plan of the query. For an aggregate its child
   * matters: the aggregate shuffles all groups and partial results, even if it does not return all of them.
   */
  def isShared(plan: LogicalPlan): Boolean = shared.nonEmpty && (shared(plan.canonicalized) || (plan match {
    case aggregate: Aggregate => shared(aggregate.child.canonicalized)
    case _                    => false
  }))
}

private[apportion] object ShuffleRegistry {
  private val Tag = TreeNodeTag[ShuffleRegistry]("apportion.shuffleRegistry")

  /** Registry of the query that contains a plan. A plan that Spark's planner did not make gets a new registry. */
  def of(plan: SparkPlan): ShuffleRegistry = plan
    .collectFirst { case node if node.logicalLink.exists(find(_).isDefined) => find(node.logicalLink.get).get }
    .getOrElse(new ShuffleRegistry(Set.empty))

  /**
   * Attaches one registry to a plan and its subqueries, unless they have one: Spark plans subqueries later, and plans
   * again.
   */
  def attach(plan: LogicalPlan): Unit = if (plan.collectFirst { case node if find(node).isDefined => node }.isEmpty) {
    val plans = plan +: subqueries(plan)
    val registry = new ShuffleRegistry(if (plans.size > 1) sharedPlans(plans) else Set.empty)
    // Not on leaves, as other queries may share them.
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

  private def sharedPlans(plans: Seq[LogicalPlan]): Set[LogicalPlan] =
    plans
      .flatMap(plan => plan.collect { case node => node.canonicalized }.distinct)
      .groupBy(identity)
      .collect { case (canonical, occurrences) if occurrences.size > 1 => canonical }
      .toSet
}
