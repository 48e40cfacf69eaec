package io.apportion.keys

import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.hash.Murmur3_x86_32
import org.apache.spark.unsafe.types.UTF8String

/**
 * Key distribution of Apache Flink's DataStream API, reproduced bit for bit. Flink hashes a key's `hashCode` once more
 * to get its key group. A job has as many key groups as its maximum parallelism. Each parallel operator owns a
 * contiguous range of key groups.
 */
object FlinkKeys {
  private final val MinDefaultKeyGroups = 1 << 7

  /** Maximum number of key groups that Flink allows. */
  final val MostKeyGroups = 1 << 15

  /** Flink's default: 1.5 times the parallelism, rounded up to a power of two, and limited to 128 to 32,768. */
  def maxParallelism(parallelism: Int): Int = {
    val ample = parallelism + parallelism / 2
    val power = 1 << (32 - Integer.numberOfLeadingZeros(ample - 1))
    power.max(MinDefaultKeyGroups).min(MostKeyGroups)
  }

  /** @param hash the key's `hashCode` in Java: an Integer key itself, or [[hashOfLong]] or [[hashOfString]] */
  def keyGroup(hash: Int, maxParallelism: Int): Int = {
    val murmur = Murmur3_x86_32.hashInt(hash, 0)
    (if (murmur == Int.MinValue) 0 else Math.abs(murmur)) % maxParallelism
  }

  def hashOfLong(key: Long): Int = java.lang.Long.hashCode(key)

  /** `hashCode` of a Java String, which is computed over UTF-16. For ASCII text, no String is created. */
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

  /** Index of the operator that owns a key group. As in Flink, the key group is not checked. */
  def operatorIndex(keyGroup: Long, parallelism: Int, maxParallelism: Int): Int =
    (keyGroup * parallelism / maxParallelism).toInt

  /** First and last key group of an operator. As in Flink, the index is not checked. */
  def keyGroupRange(index: Long, parallelism: Int, maxParallelism: Int): (Int, Int) = {
    val start = (index * maxParallelism + parallelism - 1) / parallelism
    val end = ((index + 1) * maxParallelism - 1) / parallelism
    (start.toInt, end.toInt)
  }

  /**
   * For each operator, the smallest Integer key from 0 that Flink sends to it. `rebalanceKeys(...)(k % parallelism)`
   * then spreads keys k evenly.
   *
   * @param maxParallelism at least `parallelism`
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
