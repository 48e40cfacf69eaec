package io.apportion.sources

import io.apportion.Guarded
import io.apportion.hints.OperatorBlock
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.apportion.SessionWithConf
import org.apache.spark.sql.catalyst.expressions.PlanExpression
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.{ColumnarRule, FileSourceScanExec, SparkPlan}
import org.apache.spark.sql.internal.SQLConf

/**
 * Gives the scans of files the number of tasks that a hint asks for. Spark cuts files by settings of the session that a
 * relation was made in, so the scan gets a relation in a session that differs from that one in these settings alone.
 *
 * A task reads whole row groups or stripes of formats that have them, so that of more tasks than those some read nothing. Files
 * that cannot be cut, and the way in which Spark packs files, may make it a few tasks more or less.
 */
case class ScanTasks(session: SparkSession) extends Guarded[SparkPlan] {

  override protected def applyGuarded(plan: SparkPlan): SparkPlan = plan.transformUp {
    case scan: FileSourceScanExec if !scan.bucketedScan =>
      OperatorBlock
        .ofScan(scan)
        .flatMap(_.hints.scans)
        .fold(scan)(hint => withTasks(scan, hint.value.min(ScanTasks.Most)))
  }

  private def withTasks(scan: FileSourceScanExec, tasks: Int): FileSourceScanExec = {
    val relation = scan.relation
    val files = filesOf(scan)
    if (files.isEmpty) scan
    else {
      val cutting = SessionWithConf.of(
        relation.sparkSession,
        SQLConf.FILES_MAX_PARTITION_BYTES.key -> FileSplits.sizeFor(files, tasks).toString,
        SQLConf.FILES_OPEN_COST_IN_BYTES.key -> "0",
        // Spark takes another size where that makes fewer or more pieces than these.
        SQLConf.FILES_MIN_PARTITION_NUM.key -> "1",
        SQLConf.FILES_MAX_PARTITION_NUM.key -> Int.MaxValue.toString
      )
      // The session is no part of what makes two relations equal, and an equal plan would not be put in place.
      scan.copy(relation = relation.copy(options = relation.options + (ScanTasks.Option -> tasks.toString))(cutting))
    }
  }

  /** As far as they are known before the query runs. */
  private def filesOf(scan: FileSourceScanExec): Seq[FileSplits.File] = {
    val relation = scan.relation
    val static = scan.partitionFilters.filterNot(_.exists(_.isInstanceOf[PlanExpression[_]]))
    for {
      directory <- relation.location.listFiles(static, scan.dataFilters)
      file <- directory.files
      if file.getLen > 0
    } yield FileSplits.File(
      file.getLen,
      relation.fileFormat.isSplitable(relation.sparkSession, relation.options, file.getPath)
    )
  }
}

object ScanTasks {
  private val Option = "apportion.tasks"

  /** More tasks than this are not made, whatever is asked for: the driver keeps all of them. */
  private val Most = 32768

  /** The rule where it also meets plans that have no shuffle and are not adaptive for that. */
  def columnarRule(session: SparkSession): ColumnarRule = new ColumnarRule {
    override def preColumnarTransitions: Rule[SparkPlan] = ScanTasks(session)
  }
}
