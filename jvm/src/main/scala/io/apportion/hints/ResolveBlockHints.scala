package io.apportion.hints

import io.apportion.rules.Guarded
import io.apportion.settings.Settings
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.TreePattern.UNRESOLVED_HINT
import org.slf4j.LoggerFactory

/**
 * Takes Apportion's hints out of a query and marks what they stand on. Spark's parser puts a hint on top of its SELECT with all
 * that belongs to it but ORDER BY, LIMIT and their like, which come above the hint and are marked as well.
 *
 * A wrong hint is dropped with a warning, or refused under `spark.apportion.hints.strict`.
 */
case class ResolveBlockHints(session: SparkSession) extends Guarded[LogicalPlan] {

  override protected def applyGuarded(plan: LogicalPlan): LogicalPlan = {
    val resolved = plan.resolveOperatorsDownWithPruning(_.containsPattern(UNRESOLVED_HINT)) {
      case hint: UnresolvedHint => resolve(hint)
    }
    if (HintMark.isBeingResolved(resolved))
      resolved.resolveOperatorsUp { case node: UnaryNode => HintMark.extend(node) }
    else resolved
  }

  /** Spark would warn of hints that stay in the query, and some are an error. Their values are part of observed decisions. */
  override protected def applyObserved(plan: LogicalPlan): LogicalPlan = applyGuarded(plan)

  /** Spark fails at some queries with a hint that it does not know: an ORDER BY over it cannot find columns that are not selected. */
  override protected def applyWhenOff(plan: LogicalPlan): LogicalPlan =
    plan.resolveOperatorsDownWithPruning(_.containsPattern(UNRESOLVED_HINT)) {
      case hint: UnresolvedHint if isOurs(hint) => applyWhenOff(hint.child)
    }

  /** The hints that stand directly above one another are of one block; those of others stay where they are. */
  private def resolve(top: UnresolvedHint): LogicalPlan = {
    val (hints, block) = chain(top)
    val (known, foreign) = hints.partition(isOurs)
    val (misspelt, others) = foreign.partitionMap(hint => HintGrammar.misspelt(hint).toLeft(hint))
    val (wrong, read) = known.partitionMap(HintGrammar.read(_, tablesOf(block), conf.resolver))
    (misspelt ++ wrong).foreach(report)
    // The hint that was written first is the outermost, and the first of its kind is the one that counts.
    val marked = if (read.isEmpty) block else HintMark.put(block, read.reduceLeft(_ orElse _))
    others.foldRight(marked)((hint, child) => hint.copy(child = child))
  }

  private def isOurs(hint: UnresolvedHint): Boolean = HintNames.ours.contains(HintNames.normal(hint.name))

  private def chain(plan: LogicalPlan): (Seq[UnresolvedHint], LogicalPlan) = plan match {
    case hint: UnresolvedHint =>
      val (others, block) = chain(hint.child)
      (hint +: others, block)
    case block => (Nil, block)
  }

  private def report(problem: HintProblem): Unit =
    if (Settings.HintsStrict.get(conf)) throw new InvalidHint(problem)
    else ResolveBlockHints.log.warn(s"${problem.text} The query runs without this hint.")

  /** The names by which the block can call its tables; a table that has an alias is known by that alone. */
  private def tablesOf(plan: LogicalPlan): Seq[Seq[String]] = plan match {
    case alias: SubqueryAlias         => Seq(alias.identifier.qualifier :+ alias.identifier.name)
    case relation: UnresolvedRelation => Seq(relation.multipartIdentifier)
    case other                        => other.children.flatMap(tablesOf)
  }
}

object ResolveBlockHints {
  private val log = LoggerFactory.getLogger(getClass.getName.stripSuffix("$"))
}
