package io.apportion.history

/**
 * What the tasks of a stage needed in one run of its query.
 *
 * @param stored   bytes that the tasks read, as shuffles store them
 * @param tasks    number of tasks
 * @param memory   bytes of execution memory that all tasks together needed; 0 if memory was no problem
 * @param spilled  bytes that the tasks spilled to disk
 * @param failures number of runs in a row that ran out of memory
 * @param helps    whether more tasks may help
 * @param millis   run time of all tasks together; 0 if it shows nothing about the speed
 * @param written  bytes of the files that the tasks wrote
 * @param rows     rows in these files
 */
private[apportion] final case class StageRun(
    stored: Long,
    tasks: Int,
    memory: Long = 0,
    spilled: Long = 0,
    failures: Int = 0,
    helps: Boolean = true,
    millis: Long = 0,
    written: Long = 0,
    rows: Long = 0
) {

  /** Bytes of execution memory for one stored byte. */
  def memoryPerByte: Double = memory.toDouble / stored.max(1)

  /** Bytes that were spilled, for one stored byte. */
  def spilledPerByte: Double = spilled.toDouble / stored.max(1)

  /** Whether the run shows that the memory of the tasks matters. */
  def needsMemory: Boolean = memory > 0

  /** Stored bytes that a task reads in this time; `None` if the run does not show it. */
  def bytesIn(targetMillis: Long): Option[Long] =
    Option.when(millis > 0 && stored > 0)((targetMillis.toDouble / millis * stored).toLong.max(1))

  /** Whether the next run would learn the same from both. */
  def isNear(other: StageRun): Boolean =
    failures == other.failures && helps == other.helps && tasks == other.tasks &&
      (written - other.written).abs <= written / StageRun.NearWritten &&
      Seq(memory -> other.memory, spilled -> other.spilled, millis -> other.millis)
        .forall { case (one, two) => (one - two).abs <= one / StageRun.Near }
}

private[apportion] object StageRun {

  /** Run times differ by some percent between equal runs. */
  private val Near = 5

  /** The bytes of files hardly differ between equal runs. */
  private val NearWritten = 20
}
