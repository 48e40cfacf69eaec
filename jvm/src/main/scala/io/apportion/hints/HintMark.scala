package io.apportion.hints

import org.apache.spark.sql.catalyst.expressions.SubqueryExpression
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.catalyst.trees.TreePattern.PLAN_EXPRESSION

/**
 * Says on a node of a plan that it stands below a hint. Every node is marked down to the next hints, as the analyzer may
 * replace some of them, the topmost among them, by nodes that have no marks.
 *
 * @param hints what the hints of one block set; blocks are told apart by this object's identity
 * @param isTop whether the node is the topmost of its block
 */
private[hints] final case class HintMark private (hints: BlockHints, isTop: Boolean)

private[hints] object HintMark {
  private val Tag = TreeNodeTag[HintMark]("apportion.hintMark")

  def of(node: LogicalPlan): Option[HintMark] = node.getTagValue(Tag)

  def remove(node: LogicalPlan): Unit = node.unsetTagValue(Tag)

  /** Whether the analyzer may still put operators of a marked block above its marks. Plans that are analyzed have had their turn. */
  def isBeingResolved(plan: LogicalPlan): Boolean =
    of(plan).isDefined || !plan.analyzed && plan.children.exists(isBeingResolved)

  def isIn(plan: LogicalPlan): Boolean = plan.exists(node =>
    of(node).isDefined || node.containsPattern(PLAN_EXPRESSION) && node.expressions.exists(_.exists {
      case subquery: SubqueryExpression => isIn(subquery.plan)
      case _                            => false
    })
  )

  /**
   * Marks the block, or a copy of it where its nodes are part of other queries as well: what is analyzed is, and so may be
   * leaves. Hints put on the same block before come after these.
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
   * Marks what a block's ORDER BY, LIMIT and their like became, directly above the topmost node of the block so far; and what
   * the analyzer of Spark 3.5 made of the topmost nodes, whose marks it loses.
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
    case _: Sort | _: GlobalLimit | _: LocalLimit | _: Offset | _: RepartitionOperation => true
    case _                                                                              => false
  }
}
