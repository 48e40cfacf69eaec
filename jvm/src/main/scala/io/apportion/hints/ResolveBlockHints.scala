package io.apportion.hints

import io.apportion.rules.Guarded
import io.apportion.settings.QuerySettings
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.TreePattern.UNRESOLVED_HINT
import org.apache.spark.sql.internal.SQLConf

/**
 * Removes Apportion's hints from a query and marks the query blocks that they apply to. Spark's parser puts a hint
 * directly above its SELECT. ORDER BY, LIMIT and similar clauses of the same block come above the hint, and are marked
 * as well.
 *
 * A wrong hint is dropped with a warning. With `spark.apportion.hints.strict` it fails the query.
 */
case class ResolveBlockHints(session: SparkSession) extends Guarded[LogicalPlan] {

  /** The policy file applies to analyzed queries. */
  override protected def queryConf(plan: LogicalPlan): Option[SQLConf] = None

  override protected def applyGuarded(plan: LogicalPlan): LogicalPlan = {
    val resolved = plan.resolveOperatorsDownWithPruning(_.containsPattern(UNRESOLVED_HINT)) {
      case hint: UnresolvedHint => resolve(hint)
    }
    if (HintMark.isBeingResolved(resolved))
      resolved.resolveOperatorsUp { case node: UnaryNode => HintMark.extend(node) }
    else resolved
  }

  /**
   * Removes hints like [[applyGuarded]], because Spark warns about hints that remain in the query, and rejects some.
   * Observed decisions use the values of hints.
   */
  override protected def applyObserved(plan: LogicalPlan): LogicalPlan = applyGuarded(plan)

  /**
   * Only removes the hints. Spark fails some queries with an unknown hint: an ORDER BY above the hint cannot find
   * aggregates that are not selected.
   */
  override protected def applyWhenOff(plan: LogicalPlan): LogicalPlan =
    plan.resolveOperatorsDownWithPruning(_.containsPattern(UNRESOLVED_HINT)) {
      case hint: UnresolvedHint if HintNames.isOurs(hint) => applyWhenOff(hint.child)
    }

  /** Resolves a chain of hints, which all belong to one block. Hints that are not Apportion's stay where they are. */
  private def resolve(top: UnresolvedHint): LogicalPlan = {
    val (hints, block) = ResolveBlockHints.chain(top)
    val (known, foreign) = hints.partition(HintNames.isOurs)
    val (misspelt, others) = foreign.partitionMap(hint => HintGrammar.misspelt(hint).toLeft(hint))
    val (wrong, read) = known.partitionMap(HintGrammar.read(_, tablesOf(block)))
    (misspelt ++ wrong).foreach(report)
    // The first hint in the text is the outermost. Of several hints of one kind, the first wins.
    val marked = if (read.isEmpty) block else HintMark.put(block, read.reduceLeft(_ orElse _))
    others.foldRight(marked)((hint, child) => hint.copy(child = child))
  }

  private def report(problem: HintProblem): Unit =
    if (QuerySettings.HintsStrict.get(conf)) throw new InvalidHint(problem)
    else logWarning(s"${problem.text} The query runs without this hint.")

  /** Names that the block can use for its tables. A table with an alias is known only by the alias. */
  private def tablesOf(plan: LogicalPlan): Seq[Seq[String]] = plan match {
    case alias: SubqueryAlias         => Seq(alias.identifier.qualifier :+ alias.identifier.name)
    case relation: UnresolvedRelation => Seq(relation.multipartIdentifier)
    case other                        => other.children.flatMap(tablesOf)
  }
}

object ResolveBlockHints {

  /** The hints of a block and the block below them. */
  private[hints] def chain(plan: LogicalPlan): (Seq[UnresolvedHint], LogicalPlan) = plan match {
    case hint: UnresolvedHint =>
      val (others, block) = chain(hint.child)
      (hint +: others, block)
    case block => (Nil, block)
  }
}
