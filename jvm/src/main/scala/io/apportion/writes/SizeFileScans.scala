package io.apportion.writes

import io.apportion.rules.Guarded
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

  override protected def applyGuarded(plan: SparkPlan): SparkPlan =
    SizeFiles.target(SparkWrite.of(plan, session), conf).fold(plan) { case (write, target) =>
      write.query.collectLeaves() match {
        case Seq(FileScan(scan)) => limited(plan, write, scan, target.bytes.toDouble)
        case _                   => plan
      }
    }

  private def limited(plan: SparkPlan, write: TableWrite, scan: FileScan, target: Double): SparkPlan = {
    WriteListener.watch(session, write.entries, scan.files.bytes)
    new EarlierWrites(session)
      .last(write.entries)
      .fold(plan)(bytes => write.limitedTo(bytes.rowsIn(target * RowLimit.Largest)))
  }
}
