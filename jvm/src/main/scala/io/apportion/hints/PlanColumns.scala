package io.apportion.hints

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.plans.logical._

/**
 * Where the columns of one plan come from, noted while the plan has the shape of its text. The optimizer merges, moves and
 * replaces operators, but columns keep their ids, and by these an operator is found to be of a block.
 *
 * The plans of subqueries have columns of their own, whose ids may be those of other columns around them. What the optimizer
 * moves from one plan of a query into another is found there.
 *
 * @param family the columns of all plans of the query
 */
private[hints] final class PlanColumns(family: mutable.Buffer[PlanColumns]) {
  family += this

  /**
   * The block in which a column comes to be: by a scan, an alias, or as the result of an operator. It is of several where two
   * uses of one DataFrame, and in Spark 3.5 of one view, have the same columns.
   */
  private val homes = mutable.LongMap.empty[Set[QueryBlock]]

  /** The blocks whose aggregates a column is computed from, with nothing but projections and unions in between. */
  private val aggregates = mutable.LongMap.empty[Set[QueryBlock]]

  /** The blocks that group by exactly these columns without computing an aggregate: DISTINCT and its like. */
  private val groupings = mutable.Map.empty[Set[Long], Set[QueryBlock]]

  def homesOf(column: ExprId): Set[QueryBlock] =
    homes.getOrElse(column.id, family.flatMap(_.homes.get(column.id)).flatten.toSet)

  def homeOf(column: ExprId): Option[QueryBlock] = QueryBlock.common(homesOf(column))

  def aggregatesOf(column: ExprId): Set[QueryBlock] =
    aggregates.getOrElse(column.id, family.flatMap(_.aggregates.get(column.id)).flatten.toSet)

  def groupingsOf(columns: Iterable[ExprId]): Set[QueryBlock] = {
    val ids = columns.map(_.id).toSet
    groupings.getOrElse(ids, family.flatMap(_.groupings.get(ids)).flatten.toSet)
  }

  /** The columns of a plan of the same query. */
  def ofSubquery: PlanColumns = new PlanColumns(family)

  /** Notes what an operator of the block makes; its children have been noted. */
  def note(node: LogicalPlan, block: QueryBlock): Unit = node match {
    case Project(columns, _) => noteProjection(columns, block)
    case _: SubqueryAlias | _: View | _: Filter | _: Join | _: Sort | _: GlobalLimit | _: LocalLimit => // no new columns
    case aggregate: Aggregate =>
      val results = aggregate.aggregateExpressions.collect { case alias: Alias => alias }
      results.foreach { alias =>
        noteHome(alias, block)
        noteAggregates(alias.exprId, Set(block))
      }
      if (!results.exists(PlanColumns.computesAggregate))
        noteGrouping(aggregate.groupingExpressions.flatMap(_.references), block)
    case distinct: Distinct    => noteGrouping(distinct.child.output, block)
    case distinct: Deduplicate => noteGrouping(distinct.keys, block)
    case union: Union          =>
      // Where one branch is left, its columns get the ids of the union's.
      for (branch <- union.children; (column, own) <- union.output.zip(branch.output))
        noteAggregates(column.exprId, aggregatesOf(own.exprId))
    case other => PlanColumns.addedBy(other).foreach(noteHome(_, block))
  }

  private def noteProjection(columns: Seq[NamedExpression], block: QueryBlock): Unit = columns.foreach {
    case alias: Alias =>
      noteHome(alias, block)
      alias.child.foreach {
        case column: Attribute =>
          val all = aggregatesOf(column.exprId)
          val inside = all.filter(block.holds)
          noteAggregates(alias.exprId, if (inside.isEmpty) all else inside)
        case _ =>
      }
    case _ =>
  }

  private def noteHome(column: NamedExpression, block: QueryBlock): Unit =
    homes(column.exprId.id) = homes.getOrElse(column.exprId.id, Set.empty) + block

  private def noteAggregates(column: ExprId, blocks: Set[QueryBlock]): Unit =
    if (blocks.nonEmpty) aggregates(column.id) = aggregates.getOrElse(column.id, Set.empty) ++ blocks

  private def noteGrouping(columns: Seq[Attribute], block: QueryBlock): Unit = {
    val ids = columns.map(_.exprId.id).toSet
    groupings(ids) = groupings.getOrElse(ids, Set.empty) + block
  }
}

private[hints] object PlanColumns {

  /** The columns that an operator has and its inputs do not. */
  def addedBy(node: LogicalPlan): Seq[Attribute] = {
    val inputs = node.children.map(_.outputSet)
    node.output.filterNot(column => inputs.exists(_.contains(column)))
  }

  /** The aliases that bring a column of their own, unlike the first(x) AS x that dropping duplicates makes. */
  def aliases(expressions: Seq[Expression]): Seq[Alias] = expressions.collect {
    case alias: Alias if !alias.references.exists(_.exprId == alias.exprId) => alias
  }

  def computesAggregate(expression: Expression): Boolean = expression.exists(_.isInstanceOf[AggregateExpression])
}
