package io.apportion.decision

import io.apportion.decision.ranges.Bytes

/**
 * Interval that contains an unknown number of bytes. Before a stage runs, its output size is only an estimate, and an
 * interval shows how uncertain the estimate is.
 *
 * @param low  lower end in bytes, 0 or more
 * @param high upper end in bytes, or [[ByteInterval.Unbounded]] without an upper bound
 */
final case class ByteInterval(low: Long, high: Long) {
  require(0 <= low && low <= high, s"low is $low and high is $high; low must be 0 or more, and not above high")

  def isBounded: Boolean = high != ByteInterval.Unbounded

  def +(other: ByteInterval): ByteInterval = ByteInterval(Bytes.add(low, other.low), Bytes.add(high, other.high))

  /** The interval with each end multiplied by its factor. An unbounded interval stays unbounded. */
  def scaled(lowFactor: Double, highFactor: Double): ByteInterval = {
    val newLow = math.ceil(low * lowFactor).toLong
    ByteInterval(newLow, if (isBounded) math.ceil(high * highFactor).toLong.max(newLow) else high)
  }

  /** The interval with the larger one of each end. */
  def max(other: ByteInterval): ByteInterval = ByteInterval(low.max(other.low), high.max(other.high))

  /** The interval with its lower end raised to `bytes`, but not above the upper end. */
  def raisedTo(bytes: Long): ByteInterval = copy(low = low.max(bytes.min(high)))

  /** The interval with the same lower end and no upper bound. */
  def unbounded: ByteInterval = copy(high = ByteInterval.Unbounded)

  /** Geometric mean of both ends in bytes; `None` without an upper bound. */
  def typical: Option[Long] =
    if (isBounded) Some(math.round(math.sqrt(low.toDouble.max(1) * high)).min(high)) else None

  override def toString: String =
    if (low == high) Bytes.text(low)
    else if (isBounded) s"${Bytes.text(low)} to ${Bytes.text(high)}"
    else s"${Bytes.text(low)} or more"
}

object ByteInterval {

  /** Upper end of an interval without an upper bound. */
  val Unbounded: Long = Long.MaxValue

  val Zero: ByteInterval = exactly(0)

  /** Interval of every possible number of bytes. */
  val Unknown: ByteInterval = ByteInterval(0, Unbounded)

  def exactly(bytes: Long): ByteInterval = ByteInterval(bytes, bytes)
}
