package io.apportion.writes

import io.apportion.rules.{CurrentQuery, Guarded}
import io.apportion.scans.FileScan
import io.apportion.writes.statements.{SparkWrite, TableWrite}
import org.apache.spark.apportion.WaitingJob
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.{ColumnarRule, SparkPlan}
import org.apache.spark.sql.execution.datasources.V1WriteCommand

/**
 * Gives files a maximum number of rows if the stage that writes them scans one table. The number of its tasks stays, as
 * fewer tasks would take longer, and a shuffle too. So files are not too large, but may be too small.
 */
case class SizeFileScans(session: SparkSession) extends Guarded[SparkPlan] {
  override def publicName: String = "SizeFiles"

  /** A sample is a Spark job. */
  override protected def waits: Boolean = true

  override protected def mustThrow(failure: Throwable): Boolean =
    WaitingJob.isCancellation(failure) || super.mustThrow(failure)

  override protected def applyGuarded(plan: SparkPlan): SparkPlan = SparkWrite.of(plan, session) match {
    case Some(write) if isRunning && !write.isCoalesced =>
      (TargetFileSize.of(write.table, conf), write.query.collectLeaves()) match {
        case (Some(target), Seq(FileScan(scan))) => limited(plan, write, scan, target.bytes.toDouble)
        case _                                   => plan
      }
    case _ => plan
  }

  /** Whether the statement runs. EXPLAIN only plans it. */
  private def isRunning: Boolean =
    CurrentQuery.current(session).flatMap(CurrentQuery.running).exists(_.analyzed.isInstanceOf[V1WriteCommand])

  private def limited(plan: SparkPlan, write: TableWrite, scan: FileScan, target: Double): SparkPlan = {
    val earlier = EarlierWrites.of(session).ofStatement(write.entries)
    for (query <- CurrentQuery.current(session))
      WriteListener.watch(session, query, write.entries, scan.files.bytes)
    val rows = earlier
      .map(_.rowsIn(target * RowLimit.Largest))
      .orElse(
        WriteSample.bytesPerRow(session, write).map(bytes => (target * RowLimit.Largest / bytes).toLong.max(1))
      )
    rows.fold(plan)(write.limitedTo)
  }
}

object SizeFileScans {

  /** The rule as a columnar rule, which also sees plans without a shuffle: Spark does not run these adaptively. */
  def columnarRule(session: SparkSession): ColumnarRule = new ColumnarRule {
    override val preColumnarTransitions: Rule[SparkPlan] = SizeFileScans(session)
  }
}
