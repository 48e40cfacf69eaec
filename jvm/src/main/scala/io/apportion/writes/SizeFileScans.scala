package io.apportion.writes

import io.apportion.rules.{CurrentQuery, Guarded}
import io.apportion.scans.FileScan
import io.apportion.writes.statements.{SparkWrite, TableWrite}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.SparkPlan

/**
 * Gives files a maximum number of rows if the stage that writes them scans one table, and if an earlier run shows the
 * bytes of a row. The number of its tasks stays, as fewer tasks would take longer, and a shuffle too. So files are not too
 * large, but may be too small.
 */
case class SizeFileScans(session: SparkSession) extends Guarded[SparkPlan] {
  override def publicName: String = "SizeFiles"

  override protected def applyGuarded(plan: SparkPlan): SparkPlan = SparkWrite.of(plan, session) match {
    case Some(write) if !write.isCoalesced =>
      (TargetFileSize.of(write.table, conf), write.query.collectLeaves()) match {
        case (Some(target), Seq(FileScan(scan))) => limited(plan, write, scan, target.bytes.toDouble)
        case _                                   => plan
      }
    case _ => plan
  }

  private def limited(plan: SparkPlan, write: TableWrite, scan: FileScan, target: Double): SparkPlan = {
    for (query <- CurrentQuery.current(session))
      WriteListener.watch(session, query, write.entries, scan.files.bytes)
    new EarlierWrites(session)
      .last(write.entries)
      .fold(plan)(bytes => write.limitedTo(bytes.rowsIn(target * RowLimit.Largest)))
  }
}
