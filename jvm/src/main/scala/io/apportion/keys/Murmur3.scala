package io.apportion.keys

import java.lang.Integer.{rotateLeft, rotateRight}

/**
 * Inverse of Austin Appleby's MurmurHash3 (x86, 32 bits) of a long, which Spark partitions by. Each step of the hash is
 * undone separately: a rotation by the opposite rotation, a multiplication by an odd number by a multiplication by its
 * inverse modulo 2^32^.
 */
private[keys] object Murmur3 {

  /** Seed of Spark's hash partitioning. */
  private final val Seed = 42

  private final val Block1 = 0xcc9e2d51
  private final val Block2 = 0x1b873593
  private final val Sum = 0xe6546b64

  private final val BytesOfLong = 8

  private final val InverseOfBlock1 = 0xdee13bb1
  private final val InverseOfBlock2 = 0x56ed309b
  private final val InverseOf5 = 0xcccccccd
  private final val InverseOfFinal1 = 0xa5cb9243
  private final val InverseOfFinal2 = 0x7ed1b41d

  /** State of a long with this hash, after the step of its lower 32 bits and after adding the block of its upper 32. */
  def stateOf(hash: Int): Int = beforeStep(beforeFinal(hash))

  /** The long with these upper 32 bits and this state. It has the hash that the state belongs to. */
  def longOf(state: Int, upper: Int): Long = {
    val lower = wordOf(beforeStep(state ^ blockOf(upper)) ^ Seed)
    (upper.toLong << 32) | (lower & 0xffffffffL)
  }

  /** The block that 32 bits of input add to the state. */
  private def blockOf(word: Int): Int = rotateLeft(word * Block1, 15) * Block2

  private def wordOf(block: Int): Int = rotateRight(block * InverseOfBlock2, 15) * InverseOfBlock1

  /** The state before a step, with the step's block already added. */
  private def beforeStep(state: Int): Int = rotateRight((state - Sum) * InverseOf5, 13)

  private def beforeFinal(hash: Int): Int = {
    val mixed2 = (hash ^ (hash >>> 16)) * InverseOfFinal2
    val mixed1 = (mixed2 ^ (mixed2 >>> 13) ^ (mixed2 >>> 26)) * InverseOfFinal1
    mixed1 ^ (mixed1 >>> 16) ^ BytesOfLong
  }
}
