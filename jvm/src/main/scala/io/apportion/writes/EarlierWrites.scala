package io.apportion.writes

import io.apportion.history.{History, StageRun, StageRuns}
import io.apportion.util.PerApplication
import io.apportion.writes.statements.WriteEntries
import org.apache.spark.sql.SparkSession

/** Sizes of the files that statements wrote before: in this application, and in earlier ones if there is a history. */
private[writes] final class EarlierWrites(session: SparkSession) {
  private val runs = new StageRuns(History.of(session), EarlierWrites.inApplication.of(session.sparkContext))

  /** The last run of the statement, or else of any statement that wrote the table. */
  def last(entries: WriteEntries): Option[WrittenBytes] =
    find(entries.statement, "in an earlier run").orElse(ofTable(entries))

  /**
   * A query may drop most of its rows before the files. Its ratio would give few tasks to a query that keeps all rows, so
   * extreme ratios do not count.
   */
  private def ofTable(entries: WriteEntries): Option[WrittenBytes] =
    find(entries.table, "in an earlier run of another query")
      .filter(bytes => bytes.ratio >= 1 / EarlierWrites.MaxRatio && bytes.ratio <= EarlierWrites.MaxRatio)

  def add(entries: WriteEntries, run: StageRun): Unit =
    Seq(entries.statement, entries.table).foreach(runs.add(_, run))

  private def find(entry: String, source: String): Option[WrittenBytes] = runs
    .last(entry)
    .filter(run => run.stored > 0 && run.written > 0 && run.rows > 0)
    .map(WrittenBytes(_, source))
}

private[writes] object EarlierWrites {

  /** Maximum ratio of file bytes to shuffle bytes, and of shuffle bytes to file bytes, that counts for another query. */
  private val MaxRatio = 4.0

  private[apportion] val inApplication = new PerApplication(_ => StageRuns.inApplication)
}

/**
 * A run whose tasks wrote files.
 *
 * @param source how the run is known, for reasons
 */
private[writes] final case class WrittenBytes(run: StageRun, source: String) {

  /** Bytes of files for one byte that is read. */
  def ratio: Double = run.written.toDouble / run.stored

  /** Rows in a file of this size. */
  def rowsIn(fileBytes: Double): Long = (fileBytes / run.written * run.rows).toLong.max(1)
}
