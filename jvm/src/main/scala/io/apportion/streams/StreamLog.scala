package io.apportion.streams

import java.util.LinkedHashMap
import java.util.Map.Entry

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import io.apportion.util.PerApplication
import org.apache.spark.SparkContext

/**
 * The records of an application's streams, oldest first: the newest batch of each stream, and the last other records.
 * A stream ends thousands of batches an hour, so older batches are only in the event log.
 */
private[apportion] final class StreamLog {
  import StreamLog._

  private var added = 0L

  /** The newest batch of each query, with its place in the order of all records. */
  private val batches = new LinkedHashMap[String, (Long, StreamRecord)] {
    override def removeEldestEntry(eldest: Entry[String, (Long, StreamRecord)]): Boolean = size > MostRecords
  }
  private val others = mutable.Queue.empty[(Long, StreamRecord)]

  def add(record: StreamRecord): Unit = synchronized {
    added += 1
    if (record.event == StreamRecord.Batch) {
      // A put alone keeps the place of an entry, and the eldest entry must be that of the stream that is idle longest.
      batches.remove(record.query)
      batches.put(record.query, added -> record)
    } else {
      others.enqueue(added -> record)
      if (others.size > MostRecords) others.dequeue()
    }
  }

  def all: Seq[StreamRecord] = synchronized((batches.values.asScala ++ others).toSeq.sortBy(_._1).map(_._2))
}

private[apportion] object StreamLog {

  /** Maximum number of streams with a batch, and of other records. */
  val MostRecords = 1000

  private val logs = new PerApplication(_ => new StreamLog)

  def of(sparkContext: SparkContext): StreamLog = logs.of(sparkContext)
}
