package io.apportion.writes

import scala.annotation.tailrec

import io.apportion.rules.Guarded
import io.apportion.writes.statements.{SparkWrite, WrittenTable}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.apportion.QueryValues
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.adaptive.{LogicalQueryStage, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.datasources.{InsertIntoHadoopFsRelationCommand, LogicalRelation}
import org.apache.spark.sql.internal.SQLConf

/**
 * Adds a rebalance by the partition columns before a statement writes a table with partitions. Without it, each task
 * writes a file in each table partition that it has rows of. A query that places its rows itself stays unchanged.
 */
case class RebalanceWrites(session: SparkSession) extends Guarded[LogicalPlan] {
  import RebalanceWrites._

  /** The running query may be this one. Its normalized plan, which has the settings, does not exist yet. */
  override protected def queryConf(plan: LogicalPlan): Option[SQLConf] = QueryValues.confAtRoot(plan)

  override protected def applyGuarded(plan: LogicalPlan): LogicalPlan =
    if (!conf.adaptiveExecutionEnabled || !conf.plannedWriteEnabled) plan
    else
      plan match {
        case insert: InsertIntoHadoopFsRelationCommand if insert.bucketSpec.isEmpty =>
          val columns = insert.partitionColumns.filterNot(column => insert.staticPartitions.contains(column.name))
          insert.mapChildren(rebalanced(_, SparkWrite.tableOf(insert, session), columns))
        case other => other
      }

  private def rebalanced(query: LogicalPlan, table: => WrittenTable, columns: Seq[Attribute]): LogicalPlan =
    if (columns.isEmpty || isPlaced(query, AttributeSet(columns)) || hasFewTasks(query)) query
    else
      TargetFileSize.of(table, conf).fold(query) { target =>
        val partitions = conf.numShufflePartitions.max(Partitions)
        val rebalance = RebalancePartitions(columns, query, Some(partitions))
        rebalance.setTagValue(Added, target.bytes)
        rebalance
      }

  /** Whether only a few tasks scan and write the rows, so that the table gets few files even without a rebalance. */
  private def hasFewTasks(query: LogicalPlan): Boolean = query match {
    case _: Project | _: Filter | _: SubqueryAlias | _: View => hasFewTasks(query.children.head)
    case relation: LogicalRelation                           =>
      // As `FilePartition.maxSplitBytes` (3.5 to 4.2)
      val bytes = relation.stats.sizeInBytes
      val slots = session.sparkContext.defaultParallelism
      val piece = (bytes / slots).max(conf.filesOpenCostInBytes).min(conf.filesMaxPartitionBytes)
      bytes <= piece * FewTasks
    case _ => false
  }
}

object RebalanceWrites {
  private val Added = TreeNodeTag[Long]("apportion.addedRebalance")

  /** Target size of the files that an added rebalance makes; `None` if the query has the rebalance. */
  private[writes] def fileSize(added: RebalancePartitions): Option[Long] = added.getTagValue(Added)

  /** Number of tasks that write few files, if each of them writes a file in each table partition. */
  private val FewTasks = 4

  /**
   * Minimum number of shuffle partitions of the rebalance. The more there are, the less often two large table partitions
   * share one, which is then split into files of both.
   */
  private val Partitions = 1024

  /**
   * Whether the query says where its rows are or in which order, whether it has few rows, or whether its rows are
   * already placed by the partition columns.
   */
  @tailrec private def isPlaced(query: LogicalPlan, columns: AttributeSet): Boolean = query match {
    case _: RepartitionOperation | _: RebalancePartitions | _: Sort | _: GlobalLimit | _: LocalLimit | _: Offset |
        _: Tail =>
      true
    case _ if query.isStreaming || !query.deterministic => true
    case aggregate: Aggregate                           => AttributeSet(aggregate.groupingExpressions).subsetOf(columns)
    // They leave rows in their tasks.
    case unary @ (_: Project | _: Filter | _: SubqueryAlias | _: View | _: Generate | _: Sample | _: TypedFilter |
        _: DeserializeToObject | _: MapElements | _: MapPartitions | _: SerializeFromObject) =>
      isPlaced(unary.children.head, columns)
    case _ => false
  }
}

/** Removes an added rebalance when the finished stages show that one task can write all files. */
case class DropRebalances(session: SparkSession) extends Guarded[LogicalPlan] {
  override def publicName: String = "RebalanceWrites"

  override protected def applyGuarded(plan: LogicalPlan): LogicalPlan = plan.transformDown {
    case rebalance: RebalancePartitions if RebalanceWrites.fileSize(rebalance).exists(fits(rebalance.child, _)) =>
      rebalance.child
  }

  /** Whether the rows come from shuffles that are smaller than one file. Joins and generators may multiply rows. */
  private def fits(query: LogicalPlan, target: Long): Boolean = query match {
    case LogicalQueryStage(_, stage) =>
      val shuffles = stage.collectLeaves().map {
        case shuffle: ShuffleQueryStageExec if shuffle.isMaterialized =>
          shuffle.mapStats.fold(0L)(_.bytesByPartitionId.sum)
        case _ => Long.MaxValue
      }
      shuffles.size == 1 && shuffles.head <= target
    case _: Project | _: Filter => fits(query.children.head, target)
    case _                      => false
  }
}
