package io.apportion.hints

/**
 * One query block at one place in a query. A view that is used twice is two blocks.
 *
 * @param columns origins of the columns of the plan that contains the block
 * @param own     hints on this block, in the text or by rules of the policy file
 * @param source  hints of this block or of an enclosing block, which mark the nodes of this block; compared by identity
 */
final class QueryBlock private (
    private[hints] val columns: PlanColumns,
    val own: BlockHints,
    private[hints] val source: Option[BlockHints],
    val parent: Option[QueryBlock]
) {
  val depth: Int = parent.fold(0)(_.depth + 1)

  /** Hints in force for this block, including inherited ones. */
  lazy val hints: BlockHints = parent.fold(own)(outer => own.inside(outer.hints))

  /** @param without names of settings that hints do not override */
  def hinted(own: BlockHints, without: Set[String]): QueryBlock =
    new QueryBlock(columns, own.without(without), Some(own), Some(this))

  /** A block inside this one with hints on its name. */
  def nested(named: BlockHints = BlockHints.none): QueryBlock = new QueryBlock(columns, named, source, Some(this))

  /** The outermost block of a subquery in an expression of this block. */
  def subquery: QueryBlock = new QueryBlock(columns.ofSubquery, BlockHints.none, source, Some(this))

  /** Whether the other block is this block or inside it. */
  def holds(other: QueryBlock): Boolean = commonWith(other) eq this

  /** The smallest block that contains both. */
  def commonWith(other: QueryBlock): QueryBlock =
    if (this eq other) this
    else if (depth >= other.depth) parent.fold(this)(_.commonWith(other))
    else other.commonWith(this)
}

object QueryBlock {
  private[hints] def root(columns: PlanColumns, own: BlockHints): QueryBlock = new QueryBlock(columns, own, None, None)

  /** The smallest block that contains all of these. */
  def common(blocks: Iterable[QueryBlock]): Option[QueryBlock] = blocks.reduceOption(_ commonWith _)
}
