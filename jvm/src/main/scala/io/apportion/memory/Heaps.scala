package io.apportion.memory

/**
 * Heap of the processes that a broadcast table has to fit.
 *
 * @param driver   bytes of the driver's heap
 * @param executor bytes of an executor's heap; `None` if tasks run in the driver
 */
final case class Heaps(driver: Long, executor: Option[Long])
