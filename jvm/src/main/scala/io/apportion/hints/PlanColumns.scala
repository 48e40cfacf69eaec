package io.apportion.hints

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.plans.logical._

/**
 * Origins of the columns of one plan, recorded while the plan still has the shape of the query text. The optimizer
 * merges, moves and replaces operators, but columns keep their ids. These ids lead from an operator to its block.
 *
 * The plan of a subquery has a separate instance, because its column ids may also occur in the outer plan. The
 * optimizer can move columns from one plan of a query into another. Such columns are found in `family`.
 *
 * @param family the columns of all plans of the query
 */
private[hints] final class PlanColumns(family: mutable.Buffer[PlanColumns]) {
  family += this

  /**
   * Blocks that create a column, by a scan, an alias, or as the result of an operator. A column has several blocks if
   * two uses of one DataFrame (in Spark 3.5 also of one view) have the same columns.
   */
  private val homes = mutable.LongMap.empty[Set[QueryBlock]]

  /** Blocks whose aggregates a column is computed from, through projections and unions only. */
  private val aggregates = mutable.LongMap.empty[Set[QueryBlock]]

  /** Blocks that group by exactly these columns. The optimizer drops the aggregate functions that no block above uses. */
  private val groupings = mutable.Map.empty[Set[Long], Set[QueryBlock]]

  def homesOf(column: ExprId): Set[QueryBlock] = known(_.homes, column.id)

  def homeOf(column: ExprId): Option[QueryBlock] = QueryBlock.common(homesOf(column))

  def aggregatesOf(column: ExprId): Set[QueryBlock] = known(_.aggregates, column.id)

  def groupingsOf(columns: Seq[Attribute]): Set[QueryBlock] = known(_.groupings, idsOf(columns))

  private def known[K](blocks: PlanColumns => mutable.Map[K, Set[QueryBlock]], key: K): Set[QueryBlock] =
    blocks(this).getOrElse(key, family.flatMap(blocks(_).get(key)).flatten.toSet)

  private def idsOf(columns: Seq[Attribute]): Set[Long] = columns.map(_.exprId.id).toSet

  /** A new instance for a subquery of the same query. */
  def ofSubquery: PlanColumns = new PlanColumns(family)

  /** Records the columns that an operator of the block creates. The operator's children must be recorded before. */
  def note(node: LogicalPlan, block: QueryBlock): Unit = node match {
    case Project(columns, _) => noteProjection(columns, block)
    case _: SubqueryAlias | _: View | _: Filter | _: Join | _: Sort | _: GlobalLimit | _: LocalLimit => // no new columns
    case aggregate: Aggregate =>
      val results = aggregate.aggregateExpressions.collect { case alias: Alias => alias }
      results.foreach { alias =>
        add(homes, alias.exprId.id, Set(block))
        add(aggregates, alias.exprId.id, Set(block))
      }
      // The optimizer computes other expressions below the aggregate, in columns of their own.
      val keys = aggregate.groupingExpressions.collect { case key: Attribute => key }
      if (keys.size == aggregate.groupingExpressions.size) add(groupings, idsOf(keys), Set(block))
    case distinct: Distinct    => add(groupings, idsOf(distinct.child.output), Set(block))
    case distinct: Deduplicate => add(groupings, idsOf(distinct.keys), Set(block))
    case union: Union          =>
      // If only one branch remains, the optimizer gives its columns the ids of the union's columns.
      for (branch <- union.children; (column, branchColumn) <- union.output.zip(branch.output))
        add(aggregates, column.exprId.id, aggregatesOf(branchColumn.exprId))
    case other => PlanColumns.addedBy(other).foreach(column => add(homes, column.exprId.id, Set(block)))
  }

  private def noteProjection(columns: Seq[NamedExpression], block: QueryBlock): Unit = columns.foreach {
    case alias: Alias =>
      add(homes, alias.exprId.id, Set(block))
      alias.child.foreach {
        case column: Attribute =>
          val all = aggregatesOf(column.exprId)
          val inside = all.filter(block.holds)
          add(aggregates, alias.exprId.id, if (inside.isEmpty) all else inside)
        case _ =>
      }
    case _ =>
  }

  private def add[K](to: mutable.Map[K, Set[QueryBlock]], key: K, blocks: Set[QueryBlock]): Unit =
    if (blocks.nonEmpty) to(key) = to.getOrElse(key, Set.empty) ++ blocks
}

private[hints] object PlanColumns {

  /** Columns of an operator that none of its inputs has. */
  def addedBy(node: LogicalPlan): Seq[Attribute] = {
    val inputs = node.children.map(_.outputSet)
    node.output.filterNot(column => inputs.exists(_.contains(column)))
  }

  /** Aliases that create a column. `first(x) AS x`, which Spark makes to drop duplicates, reuses the id of x. */
  def aliases(expressions: Seq[Expression]): Seq[Alias] = expressions.collect {
    case alias: Alias if !alias.references.exists(_.exprId == alias.exprId) => alias
  }

  def computesAggregate(expression: Expression): Boolean = expression.exists(_.isInstanceOf[AggregateExpression])
}
