package io.apportion.writes.statements

import io.apportion.history.PlanFingerprint
import io.apportion.rules.CurrentQuery
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.{CoalesceExec, SparkPlan}
import org.apache.spark.sql.execution.exchange.Exchange

/**
 * A statement that writes files, as the plan of the stage whose tasks write them.
 *
 * @param query      plan whose rows are written
 * @param format     name of the format of the files
 * @param usualRatio bytes of files that a byte of a shuffle usually makes
 */
private[writes] class TableWrite(
    val query: SparkPlan,
    val table: WrittenTable,
    format: String,
    val usualRatio: Double
) {

  /** Names of the history's entries for this query and this table or path, and for all queries of the table. */
  lazy val entries: WriteEntries = {
    val table = Seq("write", this.table.name, format)
    WriteEntries(PlanFingerprint.combined(table :+ PlanFingerprint.of(query).plan), PlanFingerprint.combined(table))
  }

  /** Whether the query sets the number of its last tasks, as `coalesce(1)` does for one file. */
  lazy val isCoalesced: Boolean = TableWrite.isCoalesced(query)

  /** Whether the statement can start another file after a number of rows. Other libraries than Spark do not. */
  def limitsRows: Boolean = false

  /** The plan, with another file after this number of rows if it can. */
  def limitedTo(rowsPerFile: Long): SparkPlan = query
}

/**
 * Table or path that a statement writes.
 *
 * @param properties properties of the table; none for a path
 */
private[writes] final case class WrittenTable(name: String, properties: Map[String, String])

private[writes] final case class WriteEntries(statement: String, table: String)

private[writes] object TableWrite {

  /**
   * Usual ratios of file bytes to shuffle bytes. Generated tables (`python/measurements/file_sizes.py`) had about 0.5 with
   * ORC, 0.9 with Parquet, and 1 to 1.3 with text.
   */
  val (columnarRatio, textRatio) = (0.7, 1.0)

  private def isCoalesced(plan: SparkPlan): Boolean = plan match {
    case _: CoalesceExec => true
    case _: Exchange     => false
    case _               => plan.children.exists(isCoalesced)
  }

  /** The statement whose files the tasks of this plan write. */
  def of(plan: SparkPlan, session: SparkSession): Option[TableWrite] =
    SparkWrite.of(plan, session).orElse {
      for {
        query <- CurrentQuery.of(session) if QueryRoot.isIn(plan)
        optimized <- CurrentQuery.optimizedPlan(query)
        write <- IcebergWrite.of(plan, optimized)
      } yield write
    }
}
