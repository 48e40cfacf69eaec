package io.apportion.report

import io.apportion.decision.Policy
import io.apportion.decision.memory.HeldRows
import io.apportion.groups.ExchangeGroup
import io.apportion.shufflewrites.AdaptiveWrites
import org.apache.spark.sql.catalyst.plans.physical.RangePartitioning

/**
 * Fields of a [[DecisionEvent]] in addition to the columns of its record. Programs read these fields; the sentences in
 * the record are for people.
 *
 * @param policy     see [[ReportedDecision]]
 * @param shuffles   shuffles that are read, in the order of the record
 * @param scanMetric see [[ReportedDecision]]
 */
private[apportion] final case class EventFields(
    policy: Option[Policy],
    shuffles: Seq[ShuffleFields] = Nil,
    scanMetric: Option[Long] = None
)

private[apportion] object EventFields {

  def of(decision: ReportedDecision): EventFields =
    EventFields(decision.policy, decision.group.toSeq.flatMap(shuffles(_, decision.held)), decision.scanMetric)

  private def shuffles(group: ExchangeGroup, held: Seq[HeldRows]): Seq[ShuffleFields] =
    group.leaves.zip(group.bytes).zipWithIndex.map { case ((leaf, bytes), place) =>
      ShuffleFields(
        bytes,
        exchangeMetric = leaf.shuffle.metrics.get("dataSize").map(_.id),
        rangePartitioned = leaf.shuffle.outputPartitioning.isInstanceOf[RangePartitioning],
        notSplit = Option.when(!group.splittable.leaves(place))(group.splittable.notSplit.kind),
        setBy = AdaptiveWrites.why(leaf.shuffle).map(_.kind.name),
        held = held.lift(place).getOrElse(HeldRows.None),
        written = leaf.tree.map(tree => WrittenFields(tree.tree.groups.toSeq, tree.tree.byLevel(tree.blockBytes).toSeq))
      )
    }
}

/**
 * Fields of a shuffle that a decision is about.
 *
 * @param bytes            stored bytes of each shuffle partition
 * @param exchangeMetric   id of the metric `data size` of the exchange, which identifies the exchange in the plans of
 *                         Spark's events
 * @param rangePartitioned whether partitions are ranges of keys, as for a global sort, instead of hashes
 * @param notSplit         why tasks must read whole partitions (`NotSplit.kind`); `None` if they may read parts
 * @param setBy            who writes the shuffle (`SourceKind`); `None` if the query or an operator sets the number
 *                         of partitions
 * @param held             execution memory for one stored byte
 * @param written          how map tasks wrote the shuffle, if they decided it themselves
 */
private[apportion] final case class ShuffleFields(
    bytes: Array[Long],
    exchangeMetric: Option[Long],
    rangePartitioned: Boolean,
    notSplit: Option[String],
    setBy: Option[String],
    held: HeldRows,
    written: Option[WrittenFields]
)

/**
 * How map tasks wrote an adaptive shuffle.
 *
 * @param groups number of groups of partitions of each level, in ascending order
 * @param bytes  stored bytes in the blocks of each level
 */
private[apportion] final case class WrittenFields(groups: Seq[Int], bytes: Seq[Long])
