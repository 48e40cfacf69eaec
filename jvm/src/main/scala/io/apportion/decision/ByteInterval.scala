package io.apportion.decision

import io.apportion.decision.ranges.Bytes

/**
 * Bytes that are not known yet: at least `low`, at most `high`.
 *
 * @param high [[ByteInterval.Unbounded]] if nothing bounds them
 */
final case class ByteInterval(low: Long, high: Long) {
  require(0 <= low && low <= high, s"low is $low and high is $high; they must be in this order, and 0 or more")

  def isBounded: Boolean = high != ByteInterval.Unbounded

  def +(other: ByteInterval): ByteInterval = ByteInterval(Bytes.add(low, other.low), Bytes.add(high, other.high))

  /** Each end times its factor; an interval without an upper bound stays so. */
  def scaled(lowFactor: Double, highFactor: Double): ByteInterval = {
    val newLow = math.ceil(low * lowFactor).toLong
    ByteInterval(newLow, if (isBounded) math.ceil(high * highFactor).toLong.max(newLow) else high)
  }

  /** The same upper end, and at least so many bytes, as far as that is below it. */
  def raisedTo(bytes: Long): ByteInterval = copy(low = low.max(bytes.min(high)))

  /** The same lower end without an upper bound. */
  def unbounded: ByteInterval = copy(high = ByteInterval.Unbounded)

  /** The geometric mean of both ends, if there is an upper bound. */
  def typical: Option[Long] =
    if (isBounded) Some(math.round(math.sqrt(low.toDouble.max(1) * high)).min(high)) else None

  override def toString: String =
    if (low == high) Bytes.text(low)
    else if (isBounded) s"${Bytes.text(low)} to ${Bytes.text(high)}"
    else s"${Bytes.text(low)} or more"
}

object ByteInterval {

  /** The upper end of an interval that has none. */
  val Unbounded: Long = Long.MaxValue

  val Zero: ByteInterval = exactly(0)

  /** Nothing is known. */
  val Unknown: ByteInterval = ByteInterval(0, Unbounded)

  def exactly(bytes: Long): ByteInterval = ByteInterval(bytes, bytes)
}
