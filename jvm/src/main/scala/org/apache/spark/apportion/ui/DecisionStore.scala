package org.apache.spark.apportion.ui

import scala.collection.mutable

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import io.apportion.report.DecisionEvent
import org.apache.spark.scheduler.{SparkListener, SparkListenerEvent}
import org.apache.spark.status.ElementTrackingStore
import org.apache.spark.status.KVUtils.{viewToSeq, KVIndexParam}
import org.apache.spark.util.kvstore.KVStore

/** A decision as the UI keeps it. */
private[spark] final class DecisionData(@KVIndexParam val id: Long, val json: String)

/** The decisions of an application, in the store that its UI is made from. */
private[spark] final class DecisionStore(store: KVStore) {

  /** By query, in the order they were made. */
  def byQuery: Map[Long, Seq[JsonNode]] = viewToSeq(store.view(classOf[DecisionData]))
    .map(data => DecisionStore.mapper.readTree(data.json))
    .filter(_.path("query").isIntegralNumber)
    .groupBy(_.get("query").asLong)

  def isEmpty: Boolean = store.count(classOf[DecisionData]) == 0
}

private[spark] object DecisionStore {
  private val mapper = new ObjectMapper

  /** The decisions that are kept, and the characters of all of them; the oldest make way. */
  private val MostKept = 10000
  private val MostCharacters = 64L << 20

  /** Puts the decisions of an application into its store, while it runs or when its log is read. */
  final class Writer(store: ElementTrackingStore) extends SparkListener {
    private val kept = mutable.Queue.empty[(Long, Int)]
    private var next = 0L
    private var characters = 0L

    override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
      case DecisionEvent(decision) => keep(decision.toString)
      case _                       =>
    }

    private def keep(json: String): Unit = {
      store.write(new DecisionData(next, json))
      kept.enqueue(next -> json.length)
      next += 1
      characters += json.length
      while (kept.size > MostKept || (characters > MostCharacters && kept.size > 1)) {
        val (oldest, length) = kept.dequeue()
        store.delete(classOf[DecisionData], oldest)
        characters -= length
      }
    }
  }
}
