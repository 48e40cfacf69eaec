package io.apportion.hints

import io.apportion.decision.{Policy, ResourceRequirement, SourceKind, ValueSource}
import io.apportion.settings.{ResourceSettings, ScanSettings, SettingEntry, Settings}

/**
 * A value that a hint sets.
 *
 * @param line      line of the hint in the query, if it was written in SQL
 * @param inherited whether the hint was written on an enclosing block
 * @param rule      the rule of the policy file that has the hint, if the query does not have it
 * @param isForced  whether the rule is above the hints in the SQL
 */
final case class Hinted[+T](
    value: T,
    line: Option[Int],
    inherited: Boolean = false,
    rule: Option[ValueSource] = None,
    isForced: Boolean = false
) {

  /** Source of the value, for decision records. */
  def setBy: ValueSource = rule.getOrElse {
    val block = if (inherited) "an enclosing block" else "the query block"
    ValueSource(SourceKind.Hint, s"hint on $block" + line.fold("")(n => s", line $n"))
  }

  /** Forced rules come first, then the hints in the SQL, then other rules. */
  private[hints] def precedence: Int = if (isForced) 2 else if (rule.isEmpty) 1 else 0
}

/** Number of tasks that a hint sets. */
sealed trait TaskCount

object TaskCount {
  final case class Exactly(n: Int) extends TaskCount
  final case class Between(min: Int, max: Int) extends TaskCount
}

/**
 * A kind of hint, with values of type `T`.
 *
 * @param usage       how the hint is written
 * @param example     the hint with values, for messages
 * @param settings    settings that the hint overrides
 * @param isInherited whether the hint also applies to blocks inside its own one
 * @param table       name of the only table of the block that the hint applies to
 */
private[hints] final case class HintKind[T](
    name: String,
    usage: String,
    example: String,
    settings: Seq[SettingEntry[_]],
    isInherited: Boolean = true,
    table: Option[Seq[String]] = None
)

private[hints] object HintKind {
  val Parallelism = HintKind[TaskCount](
    "PARALLELISM",
    "PARALLELISM(n) or PARALLELISM(min, max)",
    "PARALLELISM(8) or PARALLELISM(4, 64)",
    Seq(Settings.Parallelism, Settings.MinParallelism, Settings.MaxParallelism)
  )

  val DataVolume =
    HintKind[Long]("DATA_VOLUME", "DATA_VOLUME(volume)", "DATA_VOLUME('256MB')", Seq(Settings.DataVolumePerTask))

  val BroadcastRatio =
    HintKind[Double]("BROADCAST_RATIO", "BROADCAST_RATIO(ratio)", "BROADCAST_RATIO(0.3)", Seq(Settings.BroadcastRatio))

  val Ranges = HintKind[String]("RANGES", "RANGES(even|balanced)", "RANGES(balanced)", Seq(Settings.Ranges))

  /** Task slots that the stages of the block declare. */
  val Slots = HintKind[ResourceRequirement](
    "SLOTS",
    "SLOTS(min, target, max)",
    "SLOTS(1, 16, 64)",
    Seq(ResourceSettings.MinSlots, ResourceSettings.TargetSlots, ResourceSettings.MaxSlots)
  )

  /** Milliseconds within which the query must end. It counts in the outermost block. */
  val FinishWithin = HintKind[Long](
    "FINISH_WITHIN",
    "FINISH_WITHIN(time)",
    "FINISH_WITHIN('10 min')",
    Seq(ResourceSettings.FinishWithin),
    isInherited = false
  )

  /** Tasks of every file scan of the block. */
  val Scans = HintKind[Int](
    "SOURCE_PARALLELISM",
    "SOURCE_PARALLELISM(n) or SOURCE_PARALLELISM(table, n)",
    "SOURCE_PARALLELISM(16) or SOURCE_PARALLELISM(t, 16)",
    Seq(ScanSettings.SourcesParallelism)
  )

  val all: Seq[HintKind[_]] = Seq(Parallelism, DataVolume, BroadcastRatio, Ranges, Slots, FinishWithin, Scans)

  /** Tasks of the scan of one table of the block, by the parts of the table's name. */
  def scanOf(table: Seq[String]): HintKind[Int] = Scans.copy(isInherited = false, table = Some(table))
}

/**
 * Values that hints set for a query block. Values without a hint come from the enclosing blocks and from the session.
 */
final case class BlockHints private (private val hints: Map[HintKind[_], Hinted[Any]]) {
  def isEmpty: Boolean = hints.isEmpty

  def parallelism: Option[Hinted[TaskCount]] = get(HintKind.Parallelism)
  def dataVolumePerTask: Option[Hinted[Long]] = get(HintKind.DataVolume)
  def slots: Option[Hinted[ResourceRequirement]] = get(HintKind.Slots)
  def finishWithin: Option[Hinted[Long]] = get(HintKind.FinishWithin)

  private def get[T](kind: HintKind[T]): Option[Hinted[T]] = hints.get(kind).map(_.asInstanceOf[Hinted[T]])

  /** These hints, with missing values taken from `others`. */
  def orElse(others: BlockHints): BlockHints = BlockHints(others.hints ++ hints)

  /** These hints, with missing values, and values that take precedence, from `others`. */
  private[apportion] def merged(others: BlockHints): BlockHints = BlockHints(others.hints ++ hints.filterNot {
    case (kind, hint) => others.hints.get(kind).exists(_.precedence > hint.precedence)
  })

  /**
   * Hints in force for this block inside `outer`. For each kind of hint the innermost wins. Hints that name a table,
   * and hints for the whole query, are not inherited.
   */
  def inside(outer: BlockHints): BlockHints =
    merged(BlockHints(outer.hints.filter(_._1.isInherited).transform((_, hint) => hint.copy(inherited = true))))

  /** These hints, as hints of a rule of the policy file. */
  private[apportion] def ofRule(rule: ValueSource, isForced: Boolean): BlockHints =
    BlockHints(hints.transform((_, hint) => hint.copy(line = None, rule = Some(rule), isForced = isForced)))

  /** These hints, without those that forced settings override. */
  private[hints] def without(forced: Set[String]): BlockHints = BlockHints(hints.filter { case (kind, hint) =>
    hint.isForced || !kind.settings.exists(setting => forced(setting.name))
  })

  /** Hints for all tables of a block that consists of the table with this name. */
  private[hints] def ofTable(name: Seq[String]): BlockHints = hints
    .collect {
      case (kind, hint) if kind.table.exists(HintNames.isTableNamed(_, name)) =>
        BlockHints(Map(HintKind.Scans -> hint))
    }
    .foldLeft(BlockHints.none)(_ merged _)

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
      get(HintKind.BroadcastRatio).fold(sized)(hint =>
        sized.copy(broadcastRatio = hint.value).withSources("broadcastRatio" -> hint.setBy)
      )
    get(HintKind.Ranges).fold(shared)(hint => shared.withRanges(hint.value == "balanced", hint.setBy))
  }

  /** The policy for scans of this block's tables. */
  def overSource(policy: Policy): Policy = {
    val sized = withVolume(policy)
    get(HintKind.Scans).fold(sized)(hint => sized.withParallelism(hint.value, hint.setBy))
  }

  private def withVolume(policy: Policy): Policy =
    dataVolumePerTask.fold(policy)(hint => policy.withVolume(hint.value, hint.setBy))
}

object BlockHints {
  val none: BlockHints = BlockHints(Map.empty)

  private[hints] def of[T](kind: HintKind[T], hint: Hinted[T]): BlockHints = BlockHints(Map(kind -> hint))
}
