package io.apportion.keys

import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.hash.Murmur3_x86_32
import org.apache.spark.unsafe.types.UTF8String

/**
 * Where Apache Flink's DataStream API puts keys, bit for bit: a key's `hashCode`, hashed once more, gives its key group; key groups,
 * of which a job has as many as its maximum parallelism, are dealt to the parallel operators in contiguous ranges.
 */
object FlinkKeys {
  private final val LeastMaxParallelism = 1 << 7

  /** The most key groups that Flink allows. */
  final val MostKeyGroups = 1 << 15

  /** Flink's default for operators of this parallelism: the power of two from one and a half times as many on, within 128 and 32,768. */
  def maxParallelism(parallelism: Int): Int = {
    val ample = parallelism + parallelism / 2
    val power = 1 << (32 - Integer.numberOfLeadingZeros(ample - 1))
    power.max(LeastMaxParallelism).min(MostKeyGroups)
  }

  /** @param hash the key's `hashCode` in Java: the key itself of an Integer, else see [[hashOfLong]] and [[hashOfString]] */
  def keyGroup(hash: Int, maxParallelism: Int): Int = {
    val murmur = Murmur3_x86_32.hashInt(hash, 0)
    (if (murmur == Int.MinValue) 0 else Math.abs(murmur)) % maxParallelism
  }

  def hashOfLong(key: Long): Int = java.lang.Long.hashCode(key)

  /** As of a String in Java, over UTF-16; of ASCII text without making one. */
  def hashOfString(key: UTF8String): Int = {
    val base = key.getBaseObject
    val start = key.getBaseOffset
    val length = key.numBytes
    var hash, i, signs = 0
    while (i < length) {
      val byte = Platform.getByte(base, start + i)
      hash = 31 * hash + byte
      signs |= byte
      i += 1
    }
    if (signs < 0) key.toString.hashCode else hash
  }

  /** The operator that has a key group. As in Flink, nobody checks that there is such a group. */
  def operatorIndex(keyGroup: Long, parallelism: Int, maxParallelism: Int): Int =
    (keyGroup * parallelism / maxParallelism).toInt

  /** The first and the last key group of an operator. As in Flink, nobody checks that there is such an operator. */
  def keyGroupRange(index: Long, parallelism: Int, maxParallelism: Int): (Int, Int) = {
    val start = (index * maxParallelism + parallelism - 1) / parallelism
    val end = ((index + 1) * maxParallelism - 1) / parallelism
    (start.toInt, end.toInt)
  }

  /**
   * For each operator the least Integer from 0 on that goes to it, so that `rebalanceKeys(...)(k % parallelism)` deals keys k
   * evenly.
   *
   * @param maxParallelism as much as parallelism or more
   */
  def rebalanceKeys(parallelism: Int, maxParallelism: Int): Array[Int] = {
    val keys = Array.fill(parallelism)(-1)
    var missing = parallelism
    var key = 0
    while (missing > 0) {
      val index = operatorIndex(keyGroup(key, maxParallelism).toLong, parallelism, maxParallelism)
      if (keys(index) < 0) {
        keys(index) = key
        missing -= 1
      }
      key += 1
    }
    keys
  }
}
