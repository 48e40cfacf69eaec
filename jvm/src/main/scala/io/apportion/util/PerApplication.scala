package io.apportion.util

import scala.collection.mutable

import org.apache.spark.SparkContext

/**
 * One value for each application of this JVM, which is created when it is first needed. A value must not refer to its
 * `SparkContext`, or both stay in memory.
 */
final class PerApplication[T](create: SparkContext => T) {
  private val values = mutable.WeakHashMap.empty[SparkContext, T]

  def of(sparkContext: SparkContext): T = synchronized(values.getOrElseUpdate(sparkContext, create(sparkContext)))

  /** Forgets the value of an application, as if it had just started. */
  def forget(sparkContext: SparkContext): Unit = synchronized(values.remove(sparkContext))
}
