package io.apportion.shufflewrites

import java.util.LinkedHashMap
import java.util.Map.Entry

import scala.collection.mutable

import org.apache.spark.SparkContext
import org.apache.spark.sql.execution.SparkPlan

/** Bytes of the shuffles that an application has written, by their canonical plans. */
private[apportion] final class EarlierShuffles private {
  import EarlierShuffles._

  private val known = new LinkedHashMap[Int, Long](16, 0.75f, true) {
    override def removeEldestEntry(eldest: Entry[Int, Long]): Boolean = size > MaxKnown
  }

  def get(name: Int): Option[Long] = synchronized(Option.when(known.containsKey(name))(known.get(name)))
  def put(name: Int, bytes: Long): Unit = synchronized(known.put(name, bytes))
}

private[apportion] object EarlierShuffles {
  private val MaxKnown = 1000
  private val byContext = mutable.WeakHashMap.empty[SparkContext, EarlierShuffles]

  /** The hash code is enough: with a wrong number, map tasks only start with other groups. */
  def nameOf(exchange: SparkPlan): Int = exchange.canonicalized.hashCode

  def of(sparkContext: SparkContext): EarlierShuffles =
    synchronized(byContext.getOrElseUpdate(sparkContext, new EarlierShuffles))
}
