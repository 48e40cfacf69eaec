package io.apportion.hints

import scala.util.Try

import org.apache.spark.sql.catalyst.parser.CatalystSqlParser
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnresolvedHint}
import org.apache.spark.sql.catalyst.trees.TreeNodeTag

/**
 * Hints that the policy file sets for one query.
 *
 * @param query          hints for the whole query; hints that name a table apply to the table in each block
 * @param blocks         hints for common table expressions, views, subqueries and tables, by the parts of their names
 * @param forcedSettings names of the settings that a rule puts above all hints
 */
final case class PolicyHints(
    query: BlockHints = BlockHints.none,
    blocks: Seq[(Seq[String], BlockHints)] = Nil,
    forcedSettings: Set[String] = Set.empty
) {

  /** Hints for a block with this name. */
  private[hints] def ofBlock(name: Seq[String]): BlockHints = blocks
    .collect { case (block, hints) if HintNames.isTableNamed(block, name) => hints }
    .foldLeft(BlockHints.none)(_ merged _)
    .without(forcedSettings)

  private[hints] lazy val ofQuery: BlockHints = query.without(forcedSettings)
}

object PolicyHints {
  val none: PolicyHints = PolicyHints()

  private val Tag = TreeNodeTag[PolicyHints]("apportion.policyHints")

  /** Sets the hints of a query on the root of its analyzed plan. */
  def put(plan: LogicalPlan, hints: PolicyHints): Unit = plan.setTagValue(Tag, hints)

  private[hints] def of(plan: LogicalPlan): Option[PolicyHints] = plan.getTagValue(Tag)

  /** Whether text can be the name of a block: one or more identifiers with dots between them. */
  def blockName(text: String): Option[Seq[String]] = Try(CatalystSqlParser.parseMultipartIdentifier(text)).toOption

  /**
   * Reads hints as in a SQL comment, such as `PARALLELISM(8), RANGES(balanced)`.
   *
   * @return the hints, or the first problem
   */
  def parse(text: String): Either[String, BlockHints] = {
    val parsed =
      if (text.contains("*/") || text.contains("/*")) None
      else Try(ResolveBlockHints.chain(CatalystSqlParser.parsePlan(s"SELECT /*+ $text */ 1"))._1).toOption
    parsed.filter(_.nonEmpty) match {
      case None        => Left(s"cannot read the hints '$text'. Write PARALLELISM(8), RANGES(balanced), for example")
      case Some(hints) =>
        val (problems, read) = hints.partitionMap(readOne)
        problems.headOption.toLeft(read.reduceLeft(_ orElse _))
    }
  }

  private def readOne(hint: UnresolvedHint): Either[String, BlockHints] =
    if (!HintNames.isOurs(hint))
      Left(s"unknown hint ${hint.name}. Allowed: ${HintNames.ours.mkString(", ")}")
    else HintGrammar.read(hint, tablesIn(hint)).left.map(withoutPlace)

  /** The place of a hint in the text that was made for the parser means nothing to the reader. */
  private def withoutPlace(problem: HintProblem): String =
    s"hint ${problem.hint}: ${problem.message}${problem.suggestion.fold("")(meant => s" ($meant)")}"

  /** The tables that a hint names. Whether the query has them is not known yet. */
  private def tablesIn(hint: UnresolvedHint): Seq[Seq[String]] =
    HintGrammar.argumentsOf(hint).flatMap(HintGrammar.nameParts)
}
