package io.apportion.report

import java.util.{Collections, WeakHashMap}

import scala.collection.mutable

import org.apache.spark.sql.SparkSession

/** The last decisions of one session, oldest first. */
final class DecisionLog {
  private val records = mutable.Queue.empty[DecisionRecord]

  /** Adds the records of one query, numbered after those it has already, drops the oldest above `retained`, and gives the numbered ones. */
  def add(batch: Seq[DecisionRecord], retained: Int): Seq[DecisionRecord] = synchronized {
    val numbered = batch.map { record =>
      val next = record.copy(group = records.reverseIterator.find(_.query == record.query).fold(0)(_.group + 1))
      records.enqueue(next)
      next
    }
    records.dropInPlace(math.max(0, records.size - retained))
    numbered
  }

  def all: Seq[DecisionRecord] = synchronized(records.toList)
}

object DecisionLog {
  private val logs = Collections.synchronizedMap(new WeakHashMap[SparkSession, DecisionLog])

  def of(session: SparkSession): DecisionLog = logs.computeIfAbsent(session, _ => new DecisionLog)
}
