package io.apportion.scans

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.expressions.{Expression, PlanExpression}
import org.apache.spark.sql.execution.datasources.{FileIndex, PartitionDirectory}
import org.apache.spark.sql.types.StructType

/**
 * A file index with the listing of a scan. A copy of the scan reuses the listing and does not call the index again.
 *
 * It is equal to the original index, because Spark compares indexes to find exchanges that it can reuse.
 *
 * @param filters           filters of the scan, on partitions and on data; filters with subqueries are ignored, as they
 *                          select files only when the scan runs
 * @param metadataOpsTimeNs duration of the listing in nanoseconds, which the scan shows as its metadata time
 */
private[apportion] final class ListedFileIndex(
    private val index: FileIndex,
    filters: (Seq[Expression], Seq[Expression]),
    listing: Seq[PartitionDirectory],
    override val metadataOpsTimeNs: Option[Long]
) extends FileIndex {
  private val listedFor = static(filters)

  override def listFiles(partitionFilters: Seq[Expression], dataFilters: Seq[Expression]): Seq[PartitionDirectory] =
    if (static((partitionFilters, dataFilters)) == listedFor) listing
    else index.listFiles(partitionFilters, dataFilters)

  private def static(filters: (Seq[Expression], Seq[Expression])): (Seq[Expression], Seq[Expression]) = {
    def hasSubquery(filter: Expression) = filter.exists(_.isInstanceOf[PlanExpression[_]])
    (filters._1.filterNot(hasSubquery), filters._2.filterNot(hasSubquery))
  }

  override def rootPaths: Seq[Path] = index.rootPaths
  override def inputFiles: Array[String] = index.inputFiles
  override def refresh(): Unit = index.refresh()
  override def sizeInBytes: Long = index.sizeInBytes
  override def partitionSchema: StructType = index.partitionSchema

  override def equals(other: Any): Boolean = other match {
    case listed: ListedFileIndex => index == listed.index
    case _                       => false
  }

  override def hashCode: Int = index.hashCode
}
