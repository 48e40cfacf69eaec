package io.apportion.report

import io.apportion.decision.Policy
import io.apportion.decision.memory.HeldRows

/**
 * Fields of a [[DecisionEvent]] in addition to the columns of its record. Programs read these fields; the sentences in
 * the record are for people.
 *
 * @param policy     policy that the decision was made with; `None` for an unchanged group
 * @param shuffles   shuffles that are read, in the order of the record
 * @param scanMetric id of the metric `number of output rows` of a scan, which identifies the scan in the plans of
 *                   Spark's events
 */
private[apportion] final case class EventFields(
    policy: Option[Policy],
    shuffles: Seq[ShuffleFields] = Nil,
    scanMetric: Option[Long] = None
)

/**
 * Fields of a shuffle that a decision is about.
 *
 * @param bytes            stored bytes of each shuffle partition
 * @param exchangeMetric   id of the metric `data size` of the exchange, which identifies the exchange in the plans of
 *                         Spark's events
 * @param rangePartitioned whether partitions are ranges of keys, as for a global sort, instead of hashes
 * @param notSplit         why tasks must read whole partitions (`NotSplit.kind`); `None` if they may read parts
 * @param setBy            who writes the shuffle (`WriteReason.kind`); `None` if the query or an operator sets the number
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
