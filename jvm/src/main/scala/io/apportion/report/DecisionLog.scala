package io.apportion.report

import java.lang.ref.WeakReference
import java.util.{Collections, WeakHashMap}

import scala.collection.mutable

import io.apportion.rules.CurrentQuery
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.apportion.BatchSession

/**
 * The latest decisions of one session, oldest first.
 *
 * @param retained maximum number of decisions
 */
final class DecisionLog(retained: Int = 1000) {
  private val records = mutable.Queue.empty[DecisionRecord]

  /** Number of the latest group of each query that has records. */
  private val groups = mutable.Map.empty[Option[Long], Int]

  /**
   * Adds records of one query, and returns them with their group numbers, which continue the numbers of the query.
   * Drops the oldest records if there are too many.
   */
  def add(batch: Seq[DecisionRecord]): Seq[DecisionRecord] = synchronized {
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

  /** Adds the outcome of a decision to its record, if the log still has it. */
  def complete(query: Long, group: Int, outcome: Outcome): Unit = synchronized {
    val place = records.lastIndexWhere(record => record.query.contains(query) && record.group == group)
    if (place >= 0) records.update(place, records(place).copy(outcome = Some(outcome)))
  }

  def all: Seq[DecisionRecord] = synchronized(records.toList)
}

object DecisionLog {
  private val logs = Collections.synchronizedMap(new WeakHashMap[SparkSession, DecisionLog])
  private val sources = new WeakHashMap[Map[String, String], WeakReference[Map[String, String]]]

  def of(session: SparkSession): DecisionLog = logs.computeIfAbsent(session, _ => new DecisionLog)

  /**
   * The log of the session in which the user runs a query. `planning` may be a clone of it, in which Spark plans cached
   * tables or the batches of a stream.
   */
  def ofQuery(query: Option[Long], planning: SparkSession): DecisionLog =
    of(query.flatMap(CurrentQuery.running).fold(planning)(BatchSession.starter))

  /** The latest decisions of each session that is in use. */
  def ofAllSessions: Seq[DecisionRecord] =
    logs.synchronized(logs.values.toArray(Array.empty[DecisionLog])).toSeq.flatMap(_.all)

  /** One instance for equal maps. Many decisions have the same sources, which are most of the memory of a record. */
  private def shared(equal: Map[String, String]): Map[String, String] = sources.synchronized {
    Option(sources.get(equal)).flatMap(reference => Option(reference.get)).getOrElse {
      sources.put(equal, new WeakReference(equal))
      equal
    }
  }
}
