package io.apportion.hints

/**
 * One block of a query in one place: a view that is used twice is two.
 *
 * @param columns where the columns of the plan come from that the block is in
 * @param own    the hints that were written on this block
 * @param source the hints that mark the nodes of this block, by identity; its own or those of a block around it
 */
final class QueryBlock private (
    private[hints] val columns: PlanColumns,
    val own: BlockHints,
    private[hints] val source: Option[BlockHints],
    val parent: Option[QueryBlock]
) {
  val depth: Int = parent.fold(0)(_.depth + 1)

  /** What holds for this block, with what it inherits. */
  lazy val hints: BlockHints = parent.fold(own)(outer => own.inside(outer.hints))

  def hinted(own: BlockHints): QueryBlock = new QueryBlock(columns, own, Some(own), Some(this))

  /** A block without hints in this one. */
  def nested: QueryBlock = nested(BlockHints.none)

  /** A block in this one for which hints of this one say something by its name. */
  def nested(named: BlockHints): QueryBlock = new QueryBlock(columns, named, source, Some(this))

  /** The outermost block of a subquery in an expression of this one. */
  def subquery: QueryBlock = new QueryBlock(columns.ofSubquery, BlockHints.none, source, Some(this))

  /** Whether the other block is this one or in it. */
  def holds(other: QueryBlock): Boolean = commonWith(other) eq this

  /** The smallest block that holds both. */
  def commonWith(other: QueryBlock): QueryBlock =
    if (this eq other) this
    else if (depth >= other.depth) parent.fold(this)(_.commonWith(other))
    else other.commonWith(this)
}

object QueryBlock {
  private[hints] def root(columns: PlanColumns): QueryBlock = new QueryBlock(columns, BlockHints.none, None, None)

  /** The smallest block that holds all of them. */
  def common(blocks: Iterable[QueryBlock]): Option[QueryBlock] = blocks.reduceOption(_ commonWith _)
}
