package io.apportion.writes

import java.util.Locale

import io.apportion.decision.{Policy, Rounding, SourceKind, ValueSource}
import io.apportion.groups.{ExchangeGroup, GroupRead, ShuffleLeaf}
import io.apportion.reads.PendingDecisions
import io.apportion.rules.{Guarded, ValidChanges}
import io.apportion.writes.statements.{QueryRoot, TableWrite}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.{FilterExec, ProjectExec, SortExec, SparkPlan}
import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadRule, QueryStageExec}
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec
import org.apache.spark.sql.execution.exchange.ShuffleOrigin
import org.apache.spark.sql.execution.window.WindowExec
import org.apache.spark.sql.internal.SQLConf

/**
 * Decides again how the stage reads its shuffles that writes files, so that the files have the target size. The bytes of
 * files for one byte of the shuffles come from an earlier run of the statement, or of another statement that wrote the
 * table. Without one, the ratio is usual for the format, if the stage adds no rows.
 *
 * After an earlier run, files also get a maximum number of rows: a task may have to read more than the target size,
 * because no operator above allows a split.
 */
case class SizeFiles(session: SparkSession) extends AQEShuffleReadRule with Guarded[SparkPlan] {

  /** Empty, as [[ShuffleLeaf.forbids]] decides which shuffles must not change. */
  override protected val supportedShuffleOrigins: Seq[ShuffleOrigin] = Nil

  override protected def applyGuarded(plan: SparkPlan): SparkPlan =
    SizeFiles.target(TableWrite.of(plan, session), conf).fold(plan) { case (write, target) =>
      size(plan, write, target)
    }

  private def size(plan: SparkPlan, write: TableWrite, target: TargetFileSize): SparkPlan = {
    val pending = PendingDecisions.on(plan)
    val groups = pending.map(_._1)
    val open = pending.collect { case (group, Right(read)) if SizeFiles.isOpen(read.policy) => group -> read }
    val known = new EarlierWrites(session).last(write.entries)
    // Other inputs, such as a scan below a union, are not counted.
    if (open.nonEmpty && write.query.collectLeaves().forall(_.isInstanceOf[QueryStageExec]))
      WriteListener.watch(session, write.entries, groups.map(_.inputBytes).sum)
    if (open.isEmpty || open.size < pending.size || known.isEmpty && !SizeFiles.addsNoRows(write.query)) plan
    else {
      val reads = open.map { case (group, read) =>
        val change = known.fold(SizeFiles.usual(target, write.usualRatio))(SizeFiles.change(target, _))
        val policy = change(read.policy)
        // Sorting the rows of a large file may spill. The user asked for files of that size.
        val sized = if (group.isRebalance) policy.copy(taskMemory = None) else policy
        group -> GroupRead.plan(group, read.held, sized, FileLayout.decide)
      }
      val limited = known.fold(plan) { bytes =>
        val files = reads.flatMap(_._2.decision.taskBytes).map(_ * bytes.ratio)
        write.limitedTo(bytes.rowsIn(RowLimit.of(files, target.bytes.toDouble)))
      }
      val sized = ValidChanges.applyAll(limited, reads.map(_._2))(GroupRead.applyAll)
      PendingDecisions.attach(sized, reads.map { case (group, read) => group -> Right(read) })
      sized
    }
  }
}

object SizeFiles {

  /** A statement and the size that its files should have, if it does not set the number of its tasks. */
  private[writes] def target(statement: Option[TableWrite], conf: SQLConf): Option[(TableWrite, TargetFileSize)] =
    for {
      write <- statement if !write.isCoalesced
      target <- TargetFileSize.of(write.table, conf)
    } yield write -> target

  /** Whether no hint sets the tasks. The advisory size of a write counts less, as it is for any table of its format. */
  private[writes] def isOpen(policy: Policy): Boolean =
    policy.parallelism.isEmpty && !policy.setBy.get("dataVolumePerTask").exists(_.kind == SourceKind.Hint)

  /** Whether a plan writes at most as many rows as it reads from shuffles. */
  private def addsNoRows(plan: SparkPlan): Boolean = plan match {
    case ShuffleLeaf(_)                                                                      => true
    case _: ProjectExec | _: FilterExec | _: SortExec | _: BaseAggregateExec | _: WindowExec =>
      plan.children.forall(addsNoRows)
    case _ => false
  }

  /** Change of a policy so that a task reads the input of one file. It does not fill the task slots. */
  private[writes] def change(target: TargetFileSize, known: WrittenBytes): Policy => Policy =
    ofRatio(target, known.ratio)(files => s"1 byte made $files ${known.source}")

  /** The same before any file of the table is known. */
  private[writes] def usual(target: TargetFileSize, ratio: Double): Policy => Policy =
    ofRatio(target, ratio)(files => s"if 1 byte makes $files, as usual")

  private def ofRatio(target: TargetFileSize, ratio: Double)(why: String => String): Policy => Policy = {
    val files = "%.2f bytes of files".formatLocal(Locale.ROOT, ratio)
    sized((target.bytes / ratio).toLong.max(1), s"${target.text}, ${why(files)}")
  }

  /**
   * Change of the policy for the number of shuffle partitions. Each task reads whole partitions, so two of them make a
   * file. There are more before the ratio is known: a byte of a shuffle may become more bytes of a file. Even more, as
   * for balanced ranges, would cost more time than they save.
   */
  private[writes] def ofPartitions(target: TargetFileSize, known: Option[WrittenBytes]): Policy => Policy =
    known
      .fold(sized(target.bytes / 2, target.text) _)(change(target, _))
      .andThen(_.withRanges(balanced = false, ValueSource(SourceKind.Write, target.text)))

  /** Change of a policy so that a task does not read more than the target size. */
  private[writes] def atMost(target: TargetFileSize)(policy: Policy): Policy =
    if (policy.dataVolumePerTask <= target.bytes) policy
    else policy.withVolume(target.bytes, ValueSource(SourceKind.Write, s"${target.text}, for a rebalance"))

  private def sized(volume: Long, text: String)(policy: Policy): Policy = policy
    .copy(
      slots = None,
      balanced = true,
      rounding = Rounding.Exact,
      rowBytes = false,
      minTaskVolume = policy.minTaskVolume.min(volume),
      // Broadcasts do not make files larger.
      broadcastRatio = Double.MinPositiveValue
    )
    .withVolume(volume, ValueSource(SourceKind.Write, text))
}

/**
 * Asks for enough shuffle partitions for the stage that writes files: its tasks then read whole partitions of about the
 * target size.
 */
case class SizeFileShuffles(session: SparkSession) extends Guarded[SparkPlan] {
  override def publicName: String = "SizeFiles"

  override protected def applyGuarded(plan: SparkPlan): SparkPlan = {
    QueryRoot.mark(plan)
    for ((write, target) <- SizeFiles.target(TableWrite.of(plan, session), conf)) {
      val known = new EarlierWrites(session).last(write.entries)
      val change = SizeFiles.ofPartitions(target, known)
      for {
        group <- ExchangeGroup.collect(plan) if group.forbidden.isEmpty
        ShuffleLeaf(exchange, _, None) <- group.leaves
      } {
        WriteAdvisor.put(exchange, change)
        if (group.isRebalance && (known.isEmpty || !write.limitsRows)) refineInputs(exchange, target)
      }
    }
    plan
  }

  /**
   * Lets each task that writes a rebalance read at most the target size. A part of a shuffle partition has the rows of
   * whole map tasks, so no table partition gets files that are too large.
   */
  private def refineInputs(rebalance: SparkPlan, target: TargetFileSize): Unit =
    for {
      group <- rebalance.children.flatMap(ExchangeGroup.collect)
      leaf <- group.leaves
    } WriteAdvisor.putForReads(leaf.shuffle, SizeFiles.atMost(target))
}
