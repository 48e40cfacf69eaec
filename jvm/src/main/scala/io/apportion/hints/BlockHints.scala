package io.apportion.hints

import io.apportion.decision.{Policy, ResourceRequirement, SourceKind, ValueSource}
import io.apportion.settings.{ResourceSettings, ScanSettings, SettingEntry, Settings}

/**
 * A value that a hint sets.
 *
 * @param line      line of the hint in the query, if it was written in SQL
 * @param inherited whether the hint was written on an enclosing block
 * @param rule      the rule of the policy file that has the hint, if the query does not have it
 */
final case class Hinted[+T](
    value: T,
    line: Option[Int],
    inherited: Boolean = false,
    rule: Option[ValueSource] = None
) {

  /** Source of the value, for decision records. */
  def setBy: ValueSource = rule.getOrElse {
    val block = if (inherited) "an enclosing block" else "the query block"
    ValueSource(SourceKind.Hint, s"hint on $block" + line.fold("")(n => s", line $n"))
  }
}

/** Number of tasks that a hint sets. */
sealed trait TaskCount

object TaskCount {
  final case class Exactly(n: Int) extends TaskCount
  final case class Between(min: Int, max: Int) extends TaskCount
}

/**
 * Values that hints set for a query block. Values without a hint come from the enclosing blocks and from the session.
 *
 * @param slots        task slots that the stages of the block declare
 * @param finishWithin milliseconds within which the query must end; it counts in the outermost block
 * @param scans        tasks of every file scan of the block
 * @param scansByTable tasks of the scan of one table of the block, by the parts of the table's name
 */
final case class BlockHints(
    parallelism: Option[Hinted[TaskCount]] = None,
    dataVolumePerTask: Option[Hinted[Long]] = None,
    broadcastRatio: Option[Hinted[Double]] = None,
    ranges: Option[Hinted[String]] = None,
    slots: Option[Hinted[ResourceRequirement]] = None,
    finishWithin: Option[Hinted[Long]] = None,
    scans: Option[Hinted[Int]] = None,
    scansByTable: Map[Seq[String], Hinted[Int]] = Map.empty
) {

  /** These hints, with missing values taken from `others`. */
  def orElse(others: BlockHints): BlockHints = BlockHints(
    parallelism.orElse(others.parallelism),
    dataVolumePerTask.orElse(others.dataVolumePerTask),
    broadcastRatio.orElse(others.broadcastRatio),
    ranges.orElse(others.ranges),
    slots.orElse(others.slots),
    finishWithin.orElse(others.finishWithin),
    scans.orElse(others.scans),
    others.scansByTable ++ scansByTable
  )

  /**
   * Hints in force for this block inside `outer`. For each kind of hint the innermost wins. Hints that name a table,
   * and hints for the whole query, are not inherited.
   */
  def inside(outer: BlockHints): BlockHints = orElse(
    BlockHints(
      outer.parallelism.map(_.copy(inherited = true)),
      outer.dataVolumePerTask.map(_.copy(inherited = true)),
      outer.broadcastRatio.map(_.copy(inherited = true)),
      outer.ranges.map(_.copy(inherited = true)),
      outer.slots.map(_.copy(inherited = true)),
      scans = outer.scans.map(_.copy(inherited = true))
    )
  )

  /** These hints, as hints of a rule of the policy file. */
  private[hints] def ofRule(rule: ValueSource): BlockHints = {
    def ruled[T](hint: Hinted[T]) = hint.copy(line = None, rule = Some(rule))
    BlockHints(
      parallelism.map(ruled),
      dataVolumePerTask.map(ruled),
      broadcastRatio.map(ruled),
      ranges.map(ruled),
      slots.map(ruled),
      finishWithin.map(ruled),
      scans.map(ruled),
      scansByTable.map { case (table, hint) => table -> ruled(hint) }
    )
  }

  /** These hints, without those that would override one of these settings. */
  private[hints] def without(settings: Set[String]): BlockHints = {
    def unless[T](hint: Option[T], names: SettingEntry[_]*) = hint.filterNot(_ => names.exists(s => settings(s.name)))
    BlockHints(
      unless(parallelism, Settings.Parallelism, Settings.MinParallelism, Settings.MaxParallelism),
      unless(dataVolumePerTask, Settings.DataVolumePerTask),
      unless(broadcastRatio, Settings.BroadcastRatio),
      unless(ranges, Settings.Ranges),
      unless(slots, ResourceSettings.MinSlots, ResourceSettings.TargetSlots, ResourceSettings.MaxSlots),
      unless(finishWithin, ResourceSettings.FinishWithin),
      unless(scans, ScanSettings.SourcesParallelism),
      unless(Some(scansByTable), ScanSettings.SourcesParallelism).getOrElse(Map.empty)
    )
  }

  /** The policy, with its values replaced by these hints. */
  def over(policy: Policy): Policy = {
    val counted = parallelism.fold(policy) { hint =>
      hint.value match {
        case TaskCount.Exactly(n)        => policy.withParallelism(n, hint.setBy)
        case TaskCount.Between(min, max) =>
          policy
            .copy(parallelism = None, minParallelism = min, maxParallelism = max)
            .withSources("parallelism" -> hint.setBy, "minParallelism" -> hint.setBy, "maxParallelism" -> hint.setBy)
      }
    }
    val sized = withVolume(counted)
    val shared =
      broadcastRatio.fold(sized)(hint =>
        sized.copy(broadcastRatio = hint.value).withSources("broadcastRatio" -> hint.setBy)
      )
    ranges.fold(shared)(hint => shared.withRanges(hint.value == "balanced", hint.setBy))
  }

  /** The policy for scans of this block's tables. */
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
