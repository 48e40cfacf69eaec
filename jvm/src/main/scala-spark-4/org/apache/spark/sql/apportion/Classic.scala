package org.apache.spark.sql.apportion

import scala.collection.immutable.ArraySeq

import org.apache.spark.sql.classic
import org.apache.spark.sql.execution.FileSourceScanExec
import org.apache.spark.sql.execution.datasources.{FileStatusWithMetadata, PartitionDirectory}
import org.apache.spark.sql.internal.BaseSessionStateBuilder

/** Session and Dataset that run in this JVM. Since Spark 4, a SparkSession can also be a Spark Connect client. */
private[sql] object Classic {
  type SparkSession = classic.SparkSession
  val Dataset: classic.Dataset.type = classic.Dataset
}

/** Builds a state that shares the artifacts and the Python data sources of its session. */
private[sql] abstract class ArtifactSharingBuilder(session: classic.SparkSession)
    extends BaseSessionStateBuilder(session, Some(session.sessionState)) {
  override protected lazy val dataSourceManager = session.sessionState.dataSourceManager
  override protected def artifactManager = session.sessionState.artifactManager
}

/** The files of a scan, as the scan itself has listed them. */
object SelectedFiles {
  def of(scan: FileSourceScanExec): Seq[PartitionDirectory] =
    scan.selectedPartitions.filePartitionIterator.map { directory =>
      val files = new Array[FileStatusWithMetadata](directory.numFiles.toInt)
      directory.files.copyToArray(files)
      PartitionDirectory(directory.values, ArraySeq.unsafeWrapArray(files))
    }.toSeq
}
