package io.apportion.writes

import java.util.LinkedHashMap
import java.util.Map.Entry

import scala.collection.mutable

import io.apportion.history.{History, Run, StageRun}
import io.apportion.writes.statements.WriteEntries
import org.apache.spark.SparkContext
import org.apache.spark.sql.SparkSession

/** Sizes of the files that statements wrote before: in this application, and in earlier ones if there is a history. */
private[writes] final class EarlierWrites private (history: Option[History], known: EarlierWrites.InMemory) {

  /** The last run of the statement. */
  def ofStatement(entries: WriteEntries): Option[WrittenBytes] = find(entries.statement, "in an earlier run")

  /**
   * The last run of any statement that wrote the table. A query may drop most of its rows before the files. Its ratio
   * would give few tasks to a query that keeps all rows, so extreme ratios do not count.
   */
  def ofTable(entries: WriteEntries): Option[WrittenBytes] =
    find(entries.table, "in an earlier run of another query")
      .filter(bytes => bytes.ratio >= 1 / EarlierWrites.MaxRatio && bytes.ratio <= EarlierWrites.MaxRatio)

  def add(entries: WriteEntries, run: StageRun): Unit =
    for (entry <- Seq(entries.statement, entries.table)) {
      known.put(entry, run)
      history.foreach(_.add(entry, Run("", run.stored, 0, System.currentTimeMillis(), Some(run))))
    }

  private def find(entry: String, source: String): Option[WrittenBytes] = known
    .get(entry)
    .orElse {
      val recorded = history.flatMap(_.last(entry)).flatMap(_.stage)
      recorded.foreach(known.put(entry, _))
      recorded
    }
    .filter(run => run.stored > 0 && run.written > 0 && run.rows > 0)
    .map(run => WrittenBytes(run.stored, run.written, run.rows, source))
}

private[writes] object EarlierWrites {

  /** Maximum ratio of file bytes to shuffle bytes, and of shuffle bytes to file bytes, that counts for another query. */
  private val MaxRatio = 4.0

  private val MaxKnown = 10000
  private val byContext = mutable.WeakHashMap.empty[SparkContext, InMemory]

  def of(session: SparkSession): EarlierWrites = {
    val known = synchronized(byContext.getOrElseUpdate(session.sparkContext, new InMemory))
    new EarlierWrites(History.of(session), known)
  }

  /** Forgets the runs of an application, as if it had just started. */
  private[apportion] def forget(sparkContext: SparkContext): Unit = synchronized(byContext.remove(sparkContext))

  private final class InMemory {
    private val runs = new LinkedHashMap[String, StageRun](16, 0.75f, true) {
      override def removeEldestEntry(eldest: Entry[String, StageRun]): Boolean = size > MaxKnown
    }

    def get(entry: String): Option[StageRun] = synchronized(Option(runs.get(entry)))
    def put(entry: String, run: StageRun): Unit = synchronized(runs.put(entry, run))
  }
}
