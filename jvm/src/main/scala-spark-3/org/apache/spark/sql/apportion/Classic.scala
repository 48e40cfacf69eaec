package org.apache.spark.sql.apportion

import org.apache.spark.sql
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.FileSourceScanExec
import org.apache.spark.sql.execution.datasources.PartitionDirectory
import org.apache.spark.sql.internal.BaseSessionStateBuilder

/** Session and Dataset that run in this JVM. Before Spark 4 there are no others. */
private[sql] object Classic {
  type SparkSession = sql.SparkSession
  val Dataset: sql.Dataset.type = sql.Dataset
}

/** Builds a state that shares the artifacts of its session. Before Spark 4, a session has none. */
private[sql] abstract class ArtifactSharingBuilder(session: SparkSession)
    extends BaseSessionStateBuilder(session, Some(session.sessionState))

/** The files of a scan, as the scan itself has listed them. */
object SelectedFiles {
  def of(scan: FileSourceScanExec): Seq[PartitionDirectory] = scan.selectedPartitions.toSeq
}
