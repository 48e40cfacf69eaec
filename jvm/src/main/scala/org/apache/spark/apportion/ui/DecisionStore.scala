package org.apache.spark.apportion.ui

import java.util.concurrent.atomic.AtomicLong

import scala.jdk.CollectionConverters._

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

  /** The decisions that are kept; the oldest make way. */
  private val MostKept = 10000

  /** Puts the decisions of an application into its store, while it runs or when its log is read. */
  final class Writer(store: ElementTrackingStore) extends SparkListener {
    private val next = new AtomicLong

    store.addTrigger(classOf[DecisionData], MostKept.toLong) { count =>
      val oldest = store.view(classOf[DecisionData]).max(count - MostKept).asScala.map(_.id).toSeq
      oldest.foreach(store.delete(classOf[DecisionData], _))
    }

    override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
      case DecisionEvent(decision) =>
        store.write(new DecisionData(next.getAndIncrement(), decision.toString), checkTriggers = true)
      case _ =>
    }
  }
}
