package io.apportion.report

import java.lang.ref.WeakReference
import java.util.{Collections, WeakHashMap}

import scala.collection.mutable

import org.apache.spark.sql.SparkSession

/** The last decisions of one session, oldest first. */
final class DecisionLog {
  private val records = mutable.Queue.empty[DecisionRecord]

  /** The last group of each query that has records. */
  private val groups = mutable.Map.empty[Option[Long], Int]

  /** Adds the records of one query, numbered after those it has already, drops the oldest above `retained`, and gives the numbered ones. */
  def add(batch: Seq[DecisionRecord], retained: Int): Seq[DecisionRecord] = synchronized {
    val numbered = batch.map { record =>
      val group = groups.get(record.query).fold(0)(_ + 1)
      groups.update(record.query, group)
      val next = record.copy(group = group, sources = DecisionLog.shared(record.sources))
      records.enqueue(next)
      next
    }
    while (records.size > retained) {
      val oldest = records.dequeue()
      if (groups.get(oldest.query).contains(oldest.group)) groups.remove(oldest.query)
    }
    numbered
  }

  def all: Seq[DecisionRecord] = synchronized(records.toList)
}

object DecisionLog {
  private val logs = Collections.synchronizedMap(new WeakHashMap[SparkSession, DecisionLog])
  private val sources = new WeakHashMap[Map[String, String], WeakReference[Map[String, String]]]

  def of(session: SparkSession): DecisionLog = logs.computeIfAbsent(session, _ => new DecisionLog)

  /** An equal map: decisions with the same settings share one, which is most of a record's memory. */
  private def shared(equal: Map[String, String]): Map[String, String] = sources.synchronized {
    Option(sources.get(equal)).flatMap(found => Option(found.get)).getOrElse {
      sources.put(equal, new WeakReference(equal))
      equal
    }
  }
}
