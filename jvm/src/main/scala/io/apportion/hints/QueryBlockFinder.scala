package io.apportion.hints

import scala.collection.mutable

import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.TreeNodeTag

/** Finds the query blocks of an analyzed query, and records them on its operators and columns. */
private[hints] object QueryBlockFinder {

  /** A block and the class of the node that it was recorded on. Optimizer rules copy tags to other operators. */
  final case class Placed(block: QueryBlock, kind: Class[_ <: LogicalPlan])

  private val Tag = TreeNodeTag[Placed]("apportion.queryBlock")

  /** Whether any query has blocks. If not, rules do not search their plans. */
  @volatile private var isUsed = false

  def areAssigned: Boolean = isUsed

  def placed(node: LogicalPlan): Option[Placed] = node.getTagValue(Tag)

  /** Records the blocks of a plan that shares no nodes with other plans. */
  def assign(plan: LogicalPlan, policy: PolicyHints): Unit = {
    isUsed = true
    val root = QueryBlock.root(new PlanColumns(mutable.Buffer.empty), policy.ofQuery)
    new QueryBlockFinder(policy).visit(plan, root)
    // An operator that lost its tags finds the columns at the root.
    if (placed(plan).isEmpty) plan.setTagValue(Tag, Placed(root, plan.getClass))
  }
}

private final class QueryBlockFinder(policy: PolicyHints) {

  /** For each common table expression, the smallest block that contains all its uses. */
  private val cteUses = mutable.LongMap.empty[QueryBlock]

  private def visit(node: LogicalPlan, around: QueryBlock): Unit = {
    val block = HintMark
      .of(node)
      .map(_.hints)
      .filterNot(hints => around.source.exists(_ eq hints))
      .fold(around)(around.hinted(_, without = policy.forcedSettings))
    HintMark.remove(node)
    if (!isFoundByColumns(node)) node.setTagValue(QueryBlockFinder.Tag, QueryBlockFinder.Placed(block, node.getClass))
    node match {
      case WithCTE(query, definitions) =>
        visit(query, block)
        // A later definition may use an earlier one, so visit the uses first.
        definitions.reverse.foreach(definition => visit(definition, cteUses.getOrElse(definition.id, block).nested()))
      case use: CTERelationRef =>
        cteUses(use.cteId) = cteUses.get(use.cteId).fold(block)(_ commonWith block)
      case _ =>
        node.children.foreach(child => visit(child, inside(block, node, child)))
    }
    node.subqueries.foreach(visit(_, block.subquery))
    block.columns.note(node, block)
  }

  /** Whether the node's columns identify its block, so that it needs no tag. Every optimizer rule copies tags. */
  private def isFoundByColumns(node: LogicalPlan): Boolean = node match {
    case _: Project | _: Filter | _: Join | _: SubqueryAlias | _: View => true
    case _                                                             => false
  }

  /** The block of a child node. A table with a hint, and a nested query block, get a new block. */
  private def inside(block: QueryBlock, node: LogicalPlan, child: LogicalPlan): QueryBlock = node match {
    case alias: SubqueryAlias =>
      val named = hintsOn(block, alias.identifier.qualifier :+ alias.identifier.name)
      if (named.isEmpty && child.children.isEmpty) block else block.nested(named)
    case view: View                                    => block.nested(hintsOn(block, view.desc.identifier.nameParts))
    case _: Union | _: SetOperation | RecursiveUnion() => block.nested()
    case _                                             => block
  }

  /** Hints for the block with this name, and for the scan of the table with this name. */
  private def hintsOn(block: QueryBlock, name: Seq[String]): BlockHints =
    policy.ofBlock(name).merged(block.own.ofTable(name)).merged(policy.ofQuery.ofTable(name))
}
