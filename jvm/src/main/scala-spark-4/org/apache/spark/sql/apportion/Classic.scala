package org.apache.spark.sql.apportion

import scala.collection.immutable.ArraySeq

import org.apache.spark.sql.classic
import org.apache.spark.sql.execution.FileSourceScanExec
import org.apache.spark.sql.execution.datasources.{FileStatusWithMetadata, PartitionDirectory}
import org.apache.spark.sql.internal.BaseSessionStateBuilder

/** The session and the data frames that run in this JVM: since Spark 4 SparkSession may as well be a client of Spark Connect. */
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

/** The files of a scan, as the scan has listed them itself. */
object SelectedFiles {
  def of(scan: FileSourceScanExec): Seq[PartitionDirectory] =
    scan.selectedPartitions.filePartitionIterator.map { directory =>
      val files = new Array[FileStatusWithMetadata](directory.numFiles.toInt)
      directory.files.copyToArray(files)
      PartitionDirectory(directory.values, ArraySeq.unsafeWrapArray(files))
    }.toSeq
}
