package io.apportion.streams

import io.apportion.util.{BoundedMap, PerApplication, TableFunction}
import org.apache.spark.SparkContext

/**
 * The records of an application's streams, oldest first: the newest batch of each stream, and the last other records.
 * A stream ends thousands of batches an hour, so older batches are only in the event log.
 */
private[apportion] final class StreamLog {
  import StreamLog._

  private var added = 0L

  /** The newest batch of each query, with its place in the order of all records. */
  private val batches = new BoundedMap[String, (Long, StreamRecord)](MostRecords)
  private val others = new BoundedMap[Long, (Long, StreamRecord)](MostRecords)

  def add(record: StreamRecord): Unit = synchronized {
    added += 1
    if (record.event == StreamRecord.Batch) batches.put(record.query, added -> record)
    else others.put(added, added -> record)
  }

  def all: Seq[StreamRecord] = synchronized((batches.values ++ others.values).sortBy(_._1).map(_._2))
}

private[apportion] object StreamLog {

  /** Maximum number of streams with a batch, and of other records. */
  val MostRecords = 1000

  private val logs = new PerApplication(_ => new StreamLog)

  def of(sparkContext: SparkContext): StreamLog = logs.of(sparkContext)

  /** The table function `apportion_streams()`. */
  val function: TableFunction.Description = TableFunction.withoutArguments(
    "apportion_streams",
    "_FUNC_() - Returns the newest batch and the last rescales of each stream that Apportion controls, oldest first.",
    StreamRecord.schema
  )(session => of(session.sparkContext).all.map(_.toRow))
}
