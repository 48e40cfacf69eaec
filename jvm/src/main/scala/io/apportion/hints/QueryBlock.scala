package io.apportion.hints

/**
 * One query block at one place in a query. A view that is used twice is two blocks.
 *
 * @param columns origins of the columns of the plan that contains the block
 * @param own     hints that were written on this block
 * @param ruled   hints that rules of the policy file put on this block
 * @param source  hints of this block or of an enclosing block, which mark the nodes of this block; compared by identity
 */
final class QueryBlock private (
    private[hints] val columns: PlanColumns,
    val own: BlockHints,
    private[hints] val ruled: RuledHints,
    private[hints] val source: Option[BlockHints],
    val parent: Option[QueryBlock]
) {
  val depth: Int = parent.fold(0)(_.depth + 1)

  private lazy val written: BlockHints = parent.fold(own)(outer => own.inside(outer.written))
  private lazy val allRuled: RuledHints = parent.fold(ruled)(outer => ruled.inside(outer.allRuled))

  /** Hints in force for this block, including inherited ones. */
  lazy val hints: BlockHints = allRuled.forced.orElse(written).orElse(allRuled.usual)

  /** @param without names of settings that hints do not override */
  def hinted(own: BlockHints, without: Set[String]): QueryBlock =
    new QueryBlock(columns, own.without(without), RuledHints(), Some(own), Some(this))

  /** A block without hints inside this one. */
  def nested: QueryBlock = nested(BlockHints.none, RuledHints())

  /** A block inside this one with hints on its name. */
  def nested(named: BlockHints, ruled: RuledHints): QueryBlock =
    new QueryBlock(columns, named, ruled, source, Some(this))

  /** The outermost block of a subquery in an expression of this block. */
  def subquery: QueryBlock = new QueryBlock(columns.ofSubquery, BlockHints.none, RuledHints(), source, Some(this))

  /** Whether the other block is this block or inside it. */
  def holds(other: QueryBlock): Boolean = commonWith(other) eq this

  /** The smallest block that contains both. */
  def commonWith(other: QueryBlock): QueryBlock =
    if (this eq other) this
    else if (depth >= other.depth) parent.fold(this)(_.commonWith(other))
    else other.commonWith(this)
}

object QueryBlock {
  private[hints] def root(columns: PlanColumns, ruled: RuledHints): QueryBlock =
    new QueryBlock(columns, BlockHints.none, ruled, None, None)

  /** The smallest block that contains all of these. */
  def common(blocks: Iterable[QueryBlock]): Option[QueryBlock] = blocks.reduceOption(_ commonWith _)
}
