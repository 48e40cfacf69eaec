package io.apportion.util

import java.util.LinkedHashMap
import java.util.Map.Entry

import scala.jdk.CollectionConverters._

/** A map for several threads that forgets the entry which has not been used for the longest time if there are too many. */
final class BoundedMap[K, V](max: Int) {
  private val entries = new LinkedHashMap[K, V](16, 0.75f, true) {
    override def removeEldestEntry(eldest: Entry[K, V]): Boolean = size > max
  }

  /** Last used values last. */
  def values: Seq[V] = synchronized(entries.values.asScala.toList)
  def isEmpty: Boolean = synchronized(entries.isEmpty)
  def contains(key: K): Boolean = synchronized(entries.containsKey(key))
  def get(key: K): Option[V] = synchronized(Option(entries.get(key)))
  def put(key: K, value: V): Unit = synchronized(entries.put(key, value))
  def remove(key: K): Option[V] = synchronized(Option(entries.remove(key)))

  /** Removes and returns the entry that has not been used for the longest time. */
  def removeEldest(): Option[(K, V)] =
    synchronized(entries.keySet.asScala.headOption.map(key => key -> entries.remove(key)))

  /** Returns whether the key is new. */
  def add(key: K, value: V): Boolean = synchronized(entries.put(key, value) == null)

  /** The value of a key. If it is missing, it is computed outside the lock, so that several threads may compute it. */
  def getOrCompute(key: K)(compute: => V): V = get(key).getOrElse {
    val value = compute
    put(key, value)
    value
  }
}
