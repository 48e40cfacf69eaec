package org.apache.spark.apportion.ui

import scala.collection.mutable

import com.fasterxml.jackson.annotation.JsonProperty
import com.fasterxml.jackson.databind.JsonNode
import io.apportion.streams.{StreamEvent, StreamRecord}
import org.apache.spark.scheduler.{SparkListener, SparkListenerEvent}
import org.apache.spark.status.ElementTrackingStore
import org.apache.spark.status.KVUtils.{viewToSeq, KVIndexParam}
import org.apache.spark.util.kvstore.KVStore

/** A record of a stream in the UI's store. It is kept as JSON text, which only the page parses. */
private[spark] final class StoredRecord(
    @JsonProperty("id") @KVIndexParam val id: Long,
    @JsonProperty("query") @KVIndexParam("query") val query: String,
    @JsonProperty("json") val json: String
)

/** A stream in the UI's store, with the id of its newest record. */
private[spark] final class StoredStream(
    @JsonProperty("query") @KVIndexParam val query: String,
    @JsonProperty("newest") @KVIndexParam("newest") val newest: Long
)

/**
 * The last records of a stream, oldest first.
 *
 * @param changes records that are not batches: rescales, failures and ends
 */
private[ui] final case class StreamHistory(batches: Seq[JsonNode], changes: Seq[JsonNode]) {
  def newest: JsonNode = batches.lastOption.getOrElse(changes.last)
}

/** The streams of an application, in the store behind the UI. */
private[spark] final class StreamStore(store: KVStore) {

  /** Number of streams with records. */
  def size: Int = store.count(classOf[StoredStream]).toInt

  /** The streams with the newest records, newest first. */
  private[ui] def newest(count: Int): Seq[StreamHistory] =
    viewToSeq(store.view(classOf[StoredStream]).index("newest").reverse().max(count.toLong)).map { stream =>
      val records = viewToSeq(store.view(classOf[StoredRecord]).index("query").first(stream.query).last(stream.query))
      val (batches, changes) =
        records.sortBy(_.id).map(record => DecisionStore.mapper.readTree(record.json)).partition(StreamStore.isBatch)
      StreamHistory(batches, changes)
    }
}

private[spark] object StreamStore {

  /** Limits of the number of stored streams, and of the records of a stream. The oldest are dropped first. */
  private val MaxStreams = 50
  private[ui] val MaxBatches = 200
  private[ui] val MaxChanges = 50

  private def isBatch(record: JsonNode): Boolean = record.path("event").asText == StreamRecord.Batch

  /** Writes the records of streams to a store, while the application runs or while its event log is read. */
  final class Writer(store: ElementTrackingStore, maxStreams: Int = MaxStreams) extends SparkListener {

    /** Ids of the batches and of the changes of each stream. The stream that is idle longest comes first. */
    private val kept = mutable.LinkedHashMap.empty[String, (mutable.Queue[Long], mutable.Queue[Long])]
    private var next = 0L

    override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
      case StreamEvent(record) if record.path("query_id").isTextual => keep(record.path("query_id").asText, record)
      case _                                                        =>
    }

    private def keep(query: String, record: JsonNode): Unit = {
      val (batches, changes) = kept.remove(query).getOrElse((mutable.Queue.empty[Long], mutable.Queue.empty[Long]))
      kept.put(query, (batches, changes))
      store.write(new StoredRecord(next, query, record.toString))
      store.write(new StoredStream(query, next))
      val (ids, most) = if (isBatch(record)) (batches, MaxBatches) else (changes, MaxChanges)
      ids.enqueue(next)
      if (ids.size > most) store.delete(classOf[StoredRecord], ids.dequeue())
      if (kept.size > maxStreams) drop(kept.head._1)
      next += 1
    }

    private def drop(query: String): Unit = for ((batches, changes) <- kept.remove(query)) {
      (batches ++ changes).foreach(store.delete(classOf[StoredRecord], _))
      store.delete(classOf[StoredStream], query)
    }
  }
}
