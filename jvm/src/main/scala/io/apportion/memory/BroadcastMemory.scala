package io.apportion.memory

/**
 * Heap of the processes that a broadcast table has to fit.
 *
 * @param driver   bytes of the driver's heap
 * @param executor bytes of an executor's heap; `None` if tasks run in the driver
 */
final case class Heaps(driver: Long, executor: Option[Long])

/**
 * Heap that a broadcast hash table needs, in multiples of its rows, keys and pointers. `docs/memory-accuracy.md` has the
 * measurements.
 */
private[apportion] object BroadcastMemory {

  /** The driver holds the collected rows, the table, and the blocks of it (`BroadcastExchangeExec`). */
  private val InDriver = 3.0

  /** In local mode, the driver also holds the table that its tasks read. */
  private val InLocalDriver = 4.0

  /** An executor holds the blocks and the table (`TorrentBroadcast`). Blocks can go to the disk. */
  private val InExecutor = 1.7

  /** The process whose heap a table of `bytes` bytes does not fit, with the size of that heap. */
  def tooSmall(bytes: Long, heaps: Heaps): Option[(String, Long)] = {
    val driver = Option.when(bytes * heaps.executor.fold(InLocalDriver)(_ => InDriver) > heaps.driver)(heaps.driver)
    val executor = heaps.executor.filter(bytes * InExecutor > _)
    driver.map("driver" -> _).orElse(executor.map("executor" -> _))
  }
}
