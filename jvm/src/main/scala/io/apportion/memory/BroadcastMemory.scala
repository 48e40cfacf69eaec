package io.apportion.memory

import org.apache.spark.apportion.Heaps

/**
 * Heap that a broadcast hash table needs, in multiples of its rows, keys and pointers.
 * `docs/measurements/large-broadcasts.csv` has the measurements.
 */
private[apportion] object BroadcastMemory {

  /** The driver holds the collected rows, the table, and the blocks of it (`BroadcastExchangeExec`). */
  private val InDriver = 4.0

  /** In local mode, the driver also holds the table that its tasks read. */
  private val InLocalDriver = 6.0

  /** An executor holds the blocks and the table (`TorrentBroadcast`). Blocks can go to the disk. */
  private val InExecutor = 2.0

  /** What stays until the query ends: the table and the blocks of it in the driver, and the table in an executor. */
  private val KeptInDriver = 2.0
  private val KeptInExecutor = 1.0

  /** Bytes of the smallest table that does not fit. */
  def smallestTooLarge(heaps: Heaps): Long = {
    val inDriver = heaps.driver / heaps.executor.fold(InLocalDriver)(_ => InDriver)
    heaps.executor.map(_ / InExecutor).fold(inDriver)(_ min inDriver).toLong + 1
  }

  /**
   * The process whose heap a table of `bytes` bytes does not fit, with the size of that heap.
   *
   * @param others bytes of other tables that are broadcast in the same query
   */
  def tooSmall(bytes: Long, others: Long, heaps: Heaps): Option[(String, Long)] = {
    val inDriver = bytes * heaps.executor.fold(InLocalDriver)(_ => InDriver) + others * KeptInDriver
    if (inDriver > heaps.driver) Some("driver" -> heaps.driver)
    else heaps.executor.filter(bytes * InExecutor + others * KeptInExecutor > _).map("executor" -> _)
  }
}
