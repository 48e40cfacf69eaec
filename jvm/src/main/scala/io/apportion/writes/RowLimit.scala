package io.apportion.writes

/**
 * Chooses after how many bytes a task starts another file. A task may have to read more than the target size, because no
 * operator above allows a split, or because a partition has few map outputs.
 */
private[writes] object RowLimit {

  /** Maximum size of a file, as a multiple of the target. It leaves room for the error of the ratio. */
  val Largest = 1.35

  private val Smallest = 0.7
  private val Step = 0.05

  /** Sizes that count as near the target, and the error of the ratio for which they have to be near. */
  private val (near, errors) = ((0.5, 1.5), Seq(0.95, 1.0, 1.05))

  /**
   * The size of full files for which the most bytes lie in files near the target, the last files of tasks included. If
   * sizes are equally good, it is the largest.
   *
   * @param tasks bytes of files that each task writes, or each part of it that has files of its own
   */
  def of(tasks: Seq[Double], target: Double): Double = {
    val sizes = Iterator.iterate(Largest)(_ - Step).takeWhile(_ >= Smallest)
    if (tasks.forall(_ <= target * Largest)) target * Largest
    else target * sizes.maxBy(size => tasks.map(task => nearBytes(task / target, size)).sum)
  }

  private def nearBytes(task: Double, size: Double): Double = errors.map { error =>
    val full = math.floor(task * error / size)
    val rest = task * error - full * size
    (if (isNear(size)) full * size else 0) + (if (isNear(rest)) rest else 0)
  }.sum

  private def isNear(size: Double): Boolean = size >= near._1 && size <= near._2
}
