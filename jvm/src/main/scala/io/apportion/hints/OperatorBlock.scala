package io.apportion.hints

import io.apportion.rules.CurrentQuery
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.LogicalQueryStage

/**
 * Finds the query block of a physical operator, by its node in the optimized plan. The columns that the node computes
 * or compares identify the block. Otherwise the node's tag does, if the node still has the class that was tagged.
 */
object OperatorBlock {

  /**
   * Blocks of the operators of one plan.
   *
   * @param readers for each block, a chain of operators from the exchange upwards, or only the exchange; the first
   *                operator with a known block counts
   */
  def ofEach(readers: Seq[Seq[SparkPlan]]): Seq[QueryBlock] =
    if (!QueryBlockFinder.areAssigned) Nil
    else {
      val logical = readers.map(_.flatMap(_.logicalLink).map(unwrap)).filter(_.nonEmpty)
      logical.flatten.headOption.flatMap(columnsFor).toSeq.flatMap { columns =>
        val search = new Search(columns)
        logical.flatMap(nodes => nodes.iterator.flatMap(search.known).nextOption().orElse(search.guess(nodes.head)))
      }
    }

  /** Block of the table that a scan reads. */
  def ofScan(scan: SparkPlan): Option[QueryBlock] =
    scan.logicalLink
      .filter(_ => QueryBlockFinder.areAssigned)
      .flatMap(link => columnsFor(link).flatMap(new Search(_).homeOfLeaves(link)))

  /**
   * Columns of the operator's plan. If the optimizer dropped all tags of a subtree, the analyzed plan still has them.
   */
  private def columnsFor(node: LogicalPlan): Option[PlanColumns] =
    columnsOf(node).orElse(CurrentQuery.currentPlan.flatMap(QueryBlockFinder.placed).map(_.block.columns))

  private def unwrap(node: LogicalPlan): LogicalPlan = node match {
    case stage: LogicalQueryStage => unwrap(stage.logicalPlan)
    case other                    => other
  }

  /** Columns of the node's plan, from the first node with a tag: every tag leads to them. */
  private def columnsOf(node: LogicalPlan): Option[PlanColumns] =
    QueryBlockFinder.placed(node).map(_.block.columns).orElse(children(node).iterator.flatMap(columnsOf).nextOption())

  private def children(node: LogicalPlan): Seq[LogicalPlan] = node.children.map(unwrap)

  private final class Search(plan: PlanColumns) {

    def known(node: LogicalPlan): Option[QueryBlock] = node match {
      case aggregate: Aggregate => ofAggregate(aggregate)
      case join: Join           => ofJoin(join)
      case other                => ofResults(other).orElse(noted(other))
    }

    /** The smallest block that contains all columns of the operator. */
    def guess(node: LogicalPlan): Option[QueryBlock] =
      homeOfInputs(node).orElse(homeOfLeaves(node))

    private def ofAggregate(aggregate: Aggregate): Option[QueryBlock] = {
      val (computed, others) =
        PlanColumns.aliases(aggregate.aggregateExpressions).partition(PlanColumns.computesAggregate)
      lazy val own = noted(aggregate)
      Seq(computed, others)
        .map(_.flatMap(alias => plan.aggregatesOf(alias.exprId)).toSet)
        .find(_.nonEmpty)
        .flatMap(blocks => own.filter(blocks).orElse(oneOf(blocks, homeOfInputs(aggregate))))
        .orElse(own)
        .orElse(oneOf(plan.groupingsOf(aggregate.groupingExpressions.flatMap(_.references)), homeOfInputs(aggregate)))
    }

    /** The smallest block around `blocks`. If some of these contain the block of the inputs, only they count. */
    private def oneOf(blocks: Set[QueryBlock], inputs: => Option[QueryBlock]): Option[QueryBlock] = {
      lazy val found = inputs
      val narrowed = if (blocks.size > 1) blocks.filter(block => found.forall(block.holds)) else blocks
      QueryBlock.common(if (narrowed.isEmpty) blocks else narrowed)
    }

    /** A join belongs to the smallest block that contains the compared columns of both sides. */
    private def ofJoin(join: Join): Option[QueryBlock] = {
      val compared = join.condition.toSeq
        .flatMap(splitConjuncts)
        .filter(c =>
          c.references.exists(join.left.outputSet.contains) && c.references.exists(join.right.outputSet.contains)
        )
      if (compared.nonEmpty) homeOfAll(compared.flatMap(_.references), join) else homeOfLeaves(join)
    }

    private def splitConjuncts(condition: Expression): Seq[Expression] = condition match {
      case And(left, right) => splitConjuncts(left) ++ splitConjuncts(right)
      case other            => Seq(other)
    }

    /** Finds the block by the columns that an operator, such as a window, adds. */
    private def ofResults(node: LogicalPlan): Option[QueryBlock] =
      if (node.children.isEmpty) None
      else QueryBlock.common(PlanColumns.addedBy(node).flatMap(column => plan.homeOf(column.exprId)))

    private def noted(node: LogicalPlan): Option[QueryBlock] =
      QueryBlockFinder.placed(node).filter(placed => isSameKind(placed.kind, node)).map(_.block)

    private def isSameKind(kind: Class[_], node: LogicalPlan): Boolean =
      kind == node.getClass || node.isInstanceOf[Aggregate] && BecomeAggregates.exists(_.isAssignableFrom(kind))

    private def homeOfAll(columns: Iterable[Attribute], below: LogicalPlan): Option[QueryBlock] =
      QueryBlock.common(columns.flatMap(home(_, below)))

    private def homeOfInputs(node: LogicalPlan): Option[QueryBlock] =
      homeOfAll(node.expressions.flatMap(_.references), node)

    /** The block that creates a column. A column of the optimizer belongs to the block of its source columns. */
    private def home(column: Attribute, below: LogicalPlan): Option[QueryBlock] =
      oneOf(plan.homesOf(column.exprId), homeOfLeaves(sourceOf(column, below)))
        .orElse(madeOf(column, below).flatMap(homeOfAll(_, below)))

    /** The node that creates the column. */
    private def sourceOf(column: Attribute, node: LogicalPlan): LogicalPlan =
      children(node).find(_.output.exists(_.exprId == column.exprId)).fold(node)(sourceOf(column, _))

    private def madeOf(column: Attribute, below: LogicalPlan): Option[Iterable[Attribute]] =
      children(below).iterator
        .flatMap { child =>
          child.expressions
            .collectFirst { case alias: Alias if alias.exprId == column.exprId => alias.references.toSeq }
            .orElse(madeOf(column, child))
        }
        .nextOption()

    def homeOfLeaves(node: LogicalPlan): Option[QueryBlock] =
      if (children(node).isEmpty)
        QueryBlock
          .common(node.output.flatMap(c => plan.homeOf(c.exprId)))
          .orElse(QueryBlockFinder.placed(node).map(_.block))
      else QueryBlock.common(children(node).flatMap(homeOfLeaves))
  }

  /** Operators that the optimizer replaces by aggregates. */
  private val BecomeAggregates = Seq(classOf[Distinct], classOf[Deduplicate], classOf[SetOperation])
}
