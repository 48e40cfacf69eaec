package io.apportion.sources

import io.apportion.Guarded
import io.apportion.conf.{SessionPolicy, Settings}
import io.apportion.decision.{Decider, Decision, Policy}
import io.apportion.hints.OperatorBlock
import io.apportion.report.{DecisionRecord, Decisions, Executions}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.apportion.SessionWithConf
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.{ColumnarRule, RangeExec, SparkPlan}
import org.apache.spark.sql.internal.SQLConf

/**
 * Decides how many tasks scan files, from the bytes of the files, or as a hint, an option of the reader or a setting says. Spark
 * cuts files by settings of the session that a scan was made in, so the scan is put into a session that differs from that one
 * in these settings alone.
 *
 * A task reads whole row groups or stripes of formats that have them, so that of more tasks than those some read nothing. Files
 * that cannot be cut, and the way in which Spark packs files, may make it a few tasks more or less.
 */
case class ScanTasks(session: SparkSession) extends Guarded[SparkPlan] {

  private lazy val settings = new SessionPolicy(conf, session.sparkContext)

  override protected def applyGuarded(plan: SparkPlan): SparkPlan =
    if (Settings.SourcesEnabled.get(conf)) {
      val records = Seq.newBuilder[DecisionRecord]
      val cut = plan.transformUp {
        case FileScan(scan)                                    => ofFiles(scan, records += _)
        case range: RangeExec if range.range.numSlices.isEmpty => ofUnknownSize(range)
      }
      reportInQuery(plan, records.result())
      cut
    } else plan

  override protected def applyObserved(plan: SparkPlan): SparkPlan = {
    if (Settings.SourcesEnabled.get(conf))
      reportInQuery(plan, plan.collect { case FileScan(scan) => ScanOfFiles.of(scan).map(observed(scan, _)) }.flatten)
    plan
  }

  private def observed(scan: FileScan, files: ScanOfFiles): DecisionRecord = {
    val (tasks, size) = (files.sparksTasks, files.sparksSize.min(files.decision.inputBytes))
    DecisionRecord
      .ofSource(scan.plan.nodeName.trim, files.decision, files.policy, tasks, size)
      .observed(tasks, size, files.decision.inputBytes / tasks)
  }

  private def ofFiles(scan: FileScan, reported: DecisionRecord => Unit): SparkPlan =
    ScanOfFiles.of(scan).fold(scan.plan) { files =>
      def report(tasks: Long, size: Long): Unit =
        reported(DecisionRecord.ofSource(scan.plan.nodeName.trim, files.decision, files.policy, tasks.toInt, size))

      val wanted = files.decision.parallelism.min(files.sparksTasks.max(ScanTasks.Most))
      if (files.sparksTasks == wanted) {
        report(wanted.toLong, files.sparksSize)
        scan.plan
      } else {
        val size = files.splits.sizeFor(wanted)
        report(files.splits.tasks(size), size)
        cut(scan, size, files.splits.openCost)
      }
    }

  /** How many tasks are decided for a plan that scans files, as far as the files are known; none for other plans and empty files. */
  def decide(plan: SparkPlan): Option[(Decision, Policy)] = plan match {
    case FileScan(scan) if Settings.SourcesEnabled.get(conf) =>
      ScanOfFiles.of(scan).map(files => (files.decision, files.policy))
    case _ => None
  }

  /** What Spark would do with the files of a scan, and what is decided. */
  private final class ScanOfFiles(scan: FileScan, files: Seq[FileSplits.File]) {
    private val own = scan.session.sessionState.conf

    /** The size by which Spark would cut the files, and the tasks that makes. */
    val (sparksSize, sparksTasks) = {
      val splits = new FileSplits(files, own.filesOpenCostInBytes)
      def default =
        own.getConf(SQLConf.LEAF_NODE_DEFAULT_PARALLELISM).getOrElse(scan.session.sparkContext.defaultParallelism)
      val perTask = splits.bytes / own.filesMinPartitionNum.getOrElse(default)
      val size = own.filesMaxPartitionBytes.min(own.filesOpenCostInBytes.max(perTask)).max(1)
      (size, splits.tasks(size).min(Int.MaxValue).toInt)
    }

    val policy: Policy = {
      val ofSession = settings.source(own, sparksTasks)
      val ofReader = scan.option(ScanTasks.Option).fold(ofSession)(withOption(ofSession, _))
      OperatorBlock.ofScan(scan.plan).fold(ofReader)(_.hints.overSource(ofReader))
    }

    // To open a file takes no more than a task's share, however small that is.
    val splits = new FileSplits(files, own.filesOpenCostInBytes.min(policy.dataVolumePerTask))

    val decision: Decision = Decider.decideSource(splits.bytes, policy)
  }

  private object ScanOfFiles {

    /** None if there is nothing to read. */
    def of(scan: FileScan): Option[ScanOfFiles] = {
      val files = scan.files
      Option.when(files.exists(_.bytes > 0))(new ScanOfFiles(scan, files))
    }
  }

  private def withOption(policy: Policy, value: String): Policy = value.trim.toIntOption.filter(_ >= 1) match {
    case Some(tasks) => policy.withParallelism(tasks, s"option ${ScanTasks.Option} of the reader")
    case None        =>
      logWarning(
        s"Option ${ScanTasks.Option} of the reader is '$value'; it must be a number, 1 or more. It is left out."
      )
      policy
  }

  private def cut(scan: FileScan, size: Long, openCost: Long): SparkPlan = {
    val cutting = SessionWithConf.of(
      scan.session,
      SQLConf.FILES_MAX_PARTITION_BYTES.key -> size.toString,
      SQLConf.FILES_OPEN_COST_IN_BYTES.key -> openCost.toString,
      // Spark takes another size where that makes fewer or more pieces than these.
      SQLConf.FILES_MIN_PARTITION_NUM.key -> "1",
      SQLConf.FILES_MAX_PARTITION_NUM.key -> Int.MaxValue.toString
    )
    scan.withSession(cutting, ScanTasks.CutBy -> size.toString)
  }

  private def ofUnknownSize(range: RangeExec): SparkPlan =
    settings.sourceDefault.fold(range)(tasks => range.copy(range = range.range.copy(numSlices = Some(tasks))))

  /** Planning alone, as for EXPLAIN, is no query. */
  private def reportInQuery(stage: SparkPlan, records: Seq[DecisionRecord]): Unit =
    if (records.nonEmpty && Executions.current(session).isDefined)
      Decisions.report(session, stage, records.map(_ -> Nil))
}

object ScanTasks {

  /** The option of a reader that says how many tasks scan its files. */
  val Option = "apportion.tasks"

  private val CutBy = "apportion.cutBy"

  /** No more tasks than this and than Spark's are made, whatever is asked for: the driver keeps all of them. */
  private val Most = 32768

  /** The rule where it also meets plans that have no shuffle and are not adaptive for that. */
  def columnarRule(session: SparkSession): ColumnarRule = new ColumnarRule {
    override def preColumnarTransitions: Rule[SparkPlan] = ScanTasks(session)
  }
}
