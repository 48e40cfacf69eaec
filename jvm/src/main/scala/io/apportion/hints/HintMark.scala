package io.apportion.hints

import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.catalyst.trees.TreePattern.PLAN_EXPRESSION

/**
 * Tag of a plan node that stands below a hint. Every node down to the next hints is marked, because the analyzer may
 * replace some nodes, including the topmost one, by nodes without a mark.
 *
 * @param hints values that the hints of one block set; the identity of this object distinguishes blocks
 * @param isTop whether the node is the topmost of its block
 */
private[hints] final case class HintMark private (hints: BlockHints, isTop: Boolean)

private[hints] object HintMark {
  private val Tag = TreeNodeTag[HintMark]("apportion.hintMark")

  def of(node: LogicalPlan): Option[HintMark] = node.getTagValue(Tag)

  def remove(node: LogicalPlan): Unit = node.unsetTagValue(Tag)

  /** Whether the analyzer may still put operators of a marked block above its marks. It is done with analyzed plans. */
  def isBeingResolved(plan: LogicalPlan): Boolean =
    of(plan).isDefined || !plan.analyzed && plan.children.exists(isBeingResolved)

  def isIn(plan: LogicalPlan): Boolean = {
    def isMarked(each: LogicalPlan) = each.exists(of(_).isDefined)
    isMarked(plan) || plan.containsPattern(PLAN_EXPRESSION) && plan.subqueriesAll.exists(isMarked)
  }

  /**
   * Marks the block, or a copy of it if other queries share its nodes. They share analyzed nodes, and may share leaves.
   * These hints take precedence over hints that were put on the same block before.
   */
  def put(block: LogicalPlan, hints: BlockHints): LogicalPlan = {
    val earlier = of(block).filter(_.isTop).map(_.hints)
    val own = HintMark(earlier.fold(hints)(hints.orElse), isTop = false)
    val isShared = block.analyzed || block.children.isEmpty
    def mark(node: LogicalPlan): Unit =
      if (of(node).forall(mark => earlier.exists(_ eq mark.hints)) && !leadsToHint(node)) {
        node.setTagValue(Tag, own)
        node.children.foreach(child => if (isShared || !child.analyzed && child.children.nonEmpty) mark(child))
      }
    val marked = if (isShared) block.clone() else block
    mark(marked)
    marked.setTagValue(Tag, own.copy(isTop = true))
    marked
  }

  /**
   * Extends a block's marks upwards, to nodes of ORDER BY, LIMIT and similar clauses directly above the topmost marked
   * node. Also marks the nodes by which the analyzer of Spark 3.5 replaces topmost nodes, because it loses their marks.
   */
  def extend(node: UnaryNode): LogicalPlan = {
    def isInBlock(child: HintMark) =
      if (child.isTop) organizesBlock(node) else !node.child.analyzed && !beginsBlock(node)
    if (of(node).isEmpty) of(node.child).filter(isInBlock).foreach(node.setTagValue(Tag, _))
    node
  }

  /** Whether the node belongs to an inner block whose hints are not resolved yet. */
  private def leadsToHint(node: LogicalPlan): Boolean = node match {
    case _: UnresolvedHint                         => true
    case unary: UnaryNode if organizesBlock(unary) => leadsToHint(unary.child)
    case _                                         => false
  }

  private def beginsBlock(node: UnaryNode): Boolean = node match {
    case _: SubqueryAlias | _: View | _: UnresolvedHint => true
    case _                                              => false
  }

  private def organizesBlock(node: UnaryNode): Boolean = node match {
    case _: Sort | _: GlobalLimit | _: LocalLimit | _: Offset | _: RepartitionOperation | _: RebalancePartitions => true
    case _ => false
  }
}
