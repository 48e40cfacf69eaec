package io.apportion.report

import io.apportion.decision.{ByteInterval, Policy}
import io.apportion.memory.HeldRows

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
 * @param setBy            origin of the number of partitions (`PartitionsReason.kind`); `None` if the query or Spark
 *                         set the number
 * @param held             execution memory for one stored byte
 * @param estimate         bytes that the number of partitions was chosen for, if it was chosen by bytes
 */
private[apportion] final case class ShuffleFields(
    bytes: Array[Long],
    exchangeMetric: Option[Long],
    rangePartitioned: Boolean,
    notSplit: Option[String],
    setBy: Option[String],
    held: HeldRows,
    estimate: Option[ByteInterval]
)
