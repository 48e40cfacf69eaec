package io.apportion.report

import io.apportion.decision.memory.HeldRows
import io.apportion.shufflewrites.AdaptiveWrites
import org.apache.spark.sql.apportion.exchange.TreeStatistics
import org.apache.spark.sql.catalyst.plans.physical.RangePartitioning

/**
 * Fields of a shuffle in a [[DecisionEvent]]. Programs read these fields; the sentences in the record are for people.
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
    written: Option[TreeStatistics]
)

private[apportion] object ShuffleFields {

  /** Fields of the shuffles that a decision is about, in the order of its record. */
  def of(decision: ReportedDecision): Seq[ShuffleFields] =
    for {
      group <- decision.group.toSeq
      ((leaf, bytes), place) <- group.leaves.zip(group.bytes).zipWithIndex
    } yield ShuffleFields(
      bytes,
      exchangeMetric = leaf.shuffle.metrics.get("dataSize").map(_.id),
      rangePartitioned = leaf.shuffle.outputPartitioning.isInstanceOf[RangePartitioning],
      notSplit = Option.when(!group.splittable.leaves(place))(group.splittable.notSplit.kind),
      setBy = AdaptiveWrites.why(leaf.shuffle).map(_.kind.name),
      held = decision.held.lift(place).getOrElse(HeldRows.None),
      written = leaf.tree
    )
}
