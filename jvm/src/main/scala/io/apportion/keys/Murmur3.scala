package io.apportion.keys

import java.lang.Integer.{rotateLeft, rotateRight}

/**
 * Austin Appleby's MurmurHash3 (x86, 32 bits) of a long, as Spark partitions by it, backwards. Each step of the hash is undone by
 * itself: a rotation by the opposite one, a product with an odd number by one with its inverse modulo 2^32^.
 */
private[keys] object Murmur3 {

  /** With which Spark's hash partitioning begins. */
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

  /** The state after the lower 32 bits, and the upper ones added to it, of a long with this hash. */
  def stateOf(hash: Int): Int = beforeStep(beforeFinal(hash))

  /** The long with this state, and so with its hash, and these upper 32 bits. */
  def longOf(state: Int, upper: Int): Long = {
    val lower = wordOf(beforeStep(state ^ blockOf(upper)) ^ Seed)
    (upper.toLong << 32) | (lower & 0xffffffffL)
  }

  /** What of 32 bits of input is added to the state. */
  private def blockOf(word: Int): Int = rotateLeft(word * Block1, 15) * Block2

  private def wordOf(block: Int): Int = rotateRight(block * InverseOfBlock2, 15) * InverseOfBlock1

  /** The state before a step, with the step's block added to it. */
  private def beforeStep(state: Int): Int = rotateRight((state - Sum) * InverseOf5, 13)

  private def beforeFinal(hash: Int): Int = {
    val mixed2 = (hash ^ (hash >>> 16)) * InverseOfFinal2
    val mixed1 = (mixed2 ^ (mixed2 >>> 13) ^ (mixed2 >>> 26)) * InverseOfFinal1
    mixed1 ^ (mixed1 >>> 16) ^ BytesOfLong
  }
}
