package io.apportion.decision.memory

import io.apportion.decision.ranges.{Bytes, PowersOfTwo, RangePacker, Ranges}

/** An input, of which tasks hold rows: the bytes of each subpartition. */
private[apportion] final case class HeldBytes(held: HeldRows, bytes: Array[Long])

/** Numbers of tasks whose rows fit the execution memory of a task. */
private[apportion] object MemoryLimit {

  /** Subpartitions that need more than this multiple of the mean are skewed. */
  private val Skew = 2

  /**
   * Minimum number of tasks, from `tasks` up, that need at most `limit` bytes each. If subpartitions need more, it is
   * the minimum number with which the largest task needs as little as possible. Skewed subpartitions do not count.
   *
   * @param tasks        number of tasks that the bytes ask for
   * @param most         maximum number of tasks
   * @param limit        bytes of execution memory that a task may fill, at least 1
   * @param isBalanced   whether ranges have similar bytes, instead of equally many subpartitions
   * @param isPowerOfTwo whether the number is a power of two
   * @param isSplit      whether tasks may read parts of subpartitions
   */
  def tasksNeeded(
      inputs: Seq[HeldBytes],
      tasks: Int,
      most: Int,
      limit: Long,
      isBalanced: Boolean,
      isPowerOfTwo: Boolean,
      isSplit: Boolean
  ): Int = {
    val holding = inputs.filterNot(_.held.isNone)
    val held = holding.map(_.held)
    val subpartitions = holding.map(_.bytes.length).maxOption.getOrElse(0)
    val possible = most.min(subpartitions)
    if (tasks >= possible || total(holding) <= limit) tasks
    else {
      val fitting = withoutSkewed(holding, subpartitions, limit)
      val fewest = if (isSplit) ((total(holding) - 1) / limit + 1).min(possible.toLong).toInt.max(tasks) else tasks
      if (isBalanced) {
        val bound = Bytes.sumEach(held.zip(fitting).map { case (each, bytes) => Bytes.scale(bytes, each.atMost) })
        val needed = new RangePacker(bound).tasks(limit.max(Bytes.largest(bound)), possible).max(fewest).min(possible)
        (if (isPowerOfTwo) PowersOfTwo.up(needed.toLong).toInt else needed).min(possible)
      } else {
        val reachable = limit.max(largest(held, fitting))
        Iterator
          .iterate(PowersOfTwo.up(fewest.toLong).toInt)(_ * 2)
          .takeWhile(_ < possible)
          .find(n => largest(held, fitting.map(Ranges.even(subpartitions, n).bytesOf)) <= reachable)
          .getOrElse(possible)
      }
    }
  }

  /** Bytes of execution memory for the rows of all tasks together. */
  def total(inputs: Seq[HeldBytes]): Long =
    HeldRows.needed(inputs.map(_.held), inputs.map(each => Bytes.sum(each.bytes)))

  /**
   * Bytes of execution memory for the range that needs most.
   *
   * @param bytesByInput for each input, the bytes that each range reads of it
   */
  def largest(held: Seq[HeldRows], bytesByInput: Seq[Array[Long]]): Long = {
    val inputs = bytesByInput.toIndexedSeq
    var most = 0L
    var k = 0
    while (k < inputs.headOption.fold(0)(_.length)) {
      most = most.max(HeldRows.needed(held, inputs(_)(k)))
      k += 1
    }
    most
  }

  /** Bytes of the subpartitions of each input, with 0 for skewed ones. */
  private def withoutSkewed(inputs: Seq[HeldBytes], subpartitions: Int, limit: Long): Seq[Array[Long]] = {
    val held = inputs.map(_.held)
    val bytes = inputs.map(_.bytes).toIndexedSeq
    def at(i: Int, input: Int): Long = if (i < bytes(input).length) bytes(input)(i) else 0
    val needed = Array.tabulate(subpartitions)(i => HeldRows.needed(held, at(i, _)))
    val tolerated = limit.max(Bytes.sum(needed) / needed.count(_ > 0).max(1) * Skew)
    bytes.indices.map(input => Array.tabulate(subpartitions)(i => if (needed(i) > tolerated) 0 else at(i, input)))
  }
}
