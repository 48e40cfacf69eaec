package io.apportion.hints

import io.apportion.decision.Policy

/**
 * A value that a hint sets.
 *
 * @param line      the line of the query on which the hint was written, if it was written in SQL
 * @param inherited whether it was written on a block around the one that it holds for
 */
final case class Hinted[+T](value: T, line: Option[Int], inherited: Boolean = false) {

  /** Who set the value, as decision records say it. */
  def setBy: String = {
    val block = if (inherited) "an enclosing block" else "the query block"
    s"hint on $block" + line.fold("")(n => s", line $n")
  }
}

/** How many tasks a hint asks for. */
sealed trait TaskCount

object TaskCount {
  final case class Exactly(n: Int) extends TaskCount
  final case class Between(min: Int, max: Int) extends TaskCount
}

/**
 * What hints set for a block of a query; the rest is left to the blocks around it, and to the session.
 *
 * @param scans            tasks of every file scan of the block
 * @param scansByTable     tasks of the scan of one table of the block, by the parts of its name
 */
final case class BlockHints(
    parallelism: Option[Hinted[TaskCount]] = None,
    dataVolumePerTask: Option[Hinted[Long]] = None,
    broadcastRatio: Option[Hinted[Double]] = None,
    ranges: Option[Hinted[String]] = None,
    scans: Option[Hinted[Int]] = None,
    scansByTable: Map[Seq[String], Hinted[Int]] = Map.empty
) {

  /** These hints, and of the others those that are not among them. */
  def orElse(others: BlockHints): BlockHints = BlockHints(
    parallelism.orElse(others.parallelism),
    dataVolumePerTask.orElse(others.dataVolumePerTask),
    broadcastRatio.orElse(others.broadcastRatio),
    ranges.orElse(others.ranges),
    scans.orElse(others.scans),
    others.scansByTable ++ scansByTable
  )

  /** What holds for this block inside another: the nearest wins, hint by hint; names of tables mean nothing further in. */
  def inside(outer: BlockHints): BlockHints = orElse(
    BlockHints(
      outer.parallelism.map(_.copy(inherited = true)),
      outer.dataVolumePerTask.map(_.copy(inherited = true)),
      outer.broadcastRatio.map(_.copy(inherited = true)),
      outer.ranges.map(_.copy(inherited = true)),
      outer.scans.map(_.copy(inherited = true))
    )
  )

  /** A policy with what these hints set in place of its own. */
  def over(policy: Policy): Policy = {
    val counted = parallelism.fold(policy) { hint =>
      hint.value match {
        case TaskCount.Exactly(n)        => policy.withParallelism(n, hint.setBy)
        case TaskCount.Between(min, max) =>
          policy
            .copy(parallelism = None, minParallelism = min, maxParallelism = max)
            .named("parallelism" -> hint.setBy, "minParallelism" -> hint.setBy, "maxParallelism" -> hint.setBy)
      }
    }
    val sized = withVolume(counted)
    val shared =
      broadcastRatio.fold(sized)(hint => sized.copy(broadcastRatio = hint.value).named("broadcastRatio" -> hint.setBy))
    ranges.fold(shared)(hint => shared.withRanges(hint.value == "balanced", hint.setBy))
  }

  /** The policy for the scan of a table of this block. */
  def overSource(policy: Policy): Policy = {
    val sized = withVolume(policy)
    scans.fold(sized)(hint => sized.withParallelism(hint.value, hint.setBy))
  }

  private def withVolume(policy: Policy): Policy =
    dataVolumePerTask.fold(policy)(hint => policy.withVolume(hint.value, hint.setBy))
}

object BlockHints {
  val none: BlockHints = BlockHints()
}
