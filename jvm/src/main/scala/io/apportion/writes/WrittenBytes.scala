package io.apportion.writes

/**
 * Bytes of files that tasks wrote, and the input that they came from.
 *
 * @param read    bytes that the tasks read, as shuffles store them or as the scanned files have them
 * @param written bytes of the files
 * @param rows    rows in the files
 * @param source  how the numbers are known, for reasons
 */
private[writes] final case class WrittenBytes(read: Long, written: Long, rows: Long, source: String) {
  require(read > 0 && written > 0, s"read is $read and written is $written; both must be 1 byte or more")

  /** Bytes of files for one byte that is read. */
  def ratio: Double = written.toDouble / read

  /** Rows in a file of this size. */
  def rowsIn(fileBytes: Double): Long = (fileBytes / written * rows).toLong.max(1)
}
