package io.apportion.scans

import io.apportion.decision.{Decider, Decision, Policy}
import io.apportion.hints.{BlockHints, OperatorBlock}
import io.apportion.report.{DecisionRecord, DecisionReporter, SlotTracker}
import io.apportion.rules.{CurrentQuery, Guarded}
import io.apportion.settings.{SessionPolicy, Settings}
import org.apache.spark.sql.apportion.SessionWithConf
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.{ColumnarRule, RangeExec, SparkPlan}
import org.apache.spark.sql.internal.SQLConf

/**
 * Decides how many tasks scan files, from the bytes of the files, or as a hint, an option of the reader or a setting says. Spark
 * cuts files by confs of the session that a scan was made in, so the scan gets a view of that session with other values of these.
 *
 * A scan without a set number of tasks is left to Spark where
 *  - Spark makes at least half and at most twice as many tasks as decided,
 *  - adaptive execution is off, or a streaming query runs,
 *  - another library's index lists the files, as that may take a job.
 *
 * A task reads whole row groups or stripes of formats that have them, so that of more tasks than those some read nothing. Files
 * that cannot be cut, and the way in which Spark packs files, may make it a few tasks more or less.
 */
case class ScanTasks(session: SparkSession, slotTracker: SlotTracker) extends Guarded[SparkPlan] {
  private val reported = new ReportedStages

  override protected def applyGuarded(plan: SparkPlan): SparkPlan =
    if (Settings.SourcesEnabled.get(conf)) {
      val settings = settingsNow
      val records = Seq.newBuilder[DecisionRecord]
      val cut = plan.transformUp {
        case FileScan(scan)                                    => ofFiles(scan, settings, records += _)
        case range: RangeExec if range.range.numSlices.isEmpty => ofUnknownSize(range, settings)
      }
      reportInQuery(plan, records.result())
      cut
    } else plan

  override protected def applyObserved(plan: SparkPlan): SparkPlan = {
    if (Settings.SourcesEnabled.get(conf))
      reportInQuery(
        plan,
        plan.collect { case FileScan(scan) => ScanOfFiles.of(scan, settingsNow).map(observed) }.flatten
      )
    plan
  }

  private def observed(files: ScanOfFiles): DecisionRecord = {
    val (tasks, size) = (files.sparksTasks, files.sparksSize.min(files.decision.inputBytes))
    files.record(tasks, size).observed(tasks, size, files.decision.inputBytes / tasks)
  }

  /** Slots come and go while the session lives. */
  private def settingsNow = new SessionPolicy(conf, session.sparkContext)

  private def ofFiles(scan: FileScan, settings: SessionPolicy, reported: DecisionRecord => Unit): SparkPlan =
    ScanOfFiles.of(scan, settings).fold(scan.plan) { files =>
      def report(tasks: Long, size: Long): Unit = reported(files.record(tasks.toInt, size))

      val wanted = files.decision.parallelism.min(files.sparksTasks.max(ScanTasks.Most))
      if (files.sparksTasks == wanted) {
        report(wanted.toLong, files.sparksSize)
        scan.plan
      } else {
        val within = if (files.isExplicit) ScanTasks.NearExplicit else if (files.isBounded) 0 else ScanTasks.NearDecided
        val size = files.splits.sizeFor(wanted, files.openCost, within)
        report(files.splits.tasks(size, files.openCost), size)
        files.cut(size)
      }
    }

  /** How many tasks are decided for a plan that scans files, as far as the files are known; none for other plans and empty files. */
  def decide(plan: SparkPlan): Option[(Decision, Policy)] = plan match {
    case FileScan(scan) if Settings.SourcesEnabled.get(conf) =>
      ScanOfFiles.of(scan, settingsNow).map(files => (files.decision, files.policy))
    case _ => None
  }

  /** What Spark would do with the files of a scan, and what is decided. */
  private final class ScanOfFiles(scan: FileScan, settings: SessionPolicy) {
    private val own = scan.session.sessionState.conf
    private val hints = OperatorBlock.ofScan(scan.plan).fold(BlockHints.none)(_.hints)

    lazy val splits: FileSplits = scan.files

    private lazy val leastPieces: Int = own.filesMinPartitionNum.getOrElse(
      own.getConf(SQLConf.LEAF_NODE_DEFAULT_PARALLELISM).getOrElse(scan.session.sparkContext.defaultParallelism)
    )

    /** The size by which Spark would cut the files, and the tasks that makes (`FilePartition`, 3.5 to 4.2). */
    lazy val (sparksSize: Long, sparksTasks: Int) = {
      val openCost = own.filesOpenCostInBytes
      val total = splits.cost(openCost)
      val size = own.filesMaxPartitionBytes.min(openCost.max(total / leastPieces)).max(1)
      val tasks = splits.tasks(size, openCost)
      val (chosen, made) = own.filesMaxPartitionNum.filter(_ < tasks).fold((size, tasks)) { most =>
        val larger = (total - 1) / most + 1
        (larger, splits.tasks(larger, openCost))
      }
      (chosen, made.min(Int.MaxValue).toInt)
    }

    private val ofReader = scan.option(ScanTasks.Option).flatMap(tasksOfOption)

    private def policyBeside(sparks: Int): Policy = {
      val ofSession = settings.source(own, sparks, volumeIsHinted = hints.dataVolumePerTask.isDefined)
      hints.overSource(
        ofReader.fold(ofSession)(ofSession.withParallelism(_, s"option ${ScanTasks.Option} of the reader"))
      )
    }

    private lazy val raising: Policy = policyBeside(sparksTasks)

    /** Slots are filled in each mode but `active`, and declared in reactive mode alone. */
    lazy val policy: Policy = if (settings.reactive) raising else raising.copy(slots = None)

    lazy val isExplicit: Boolean = policyBeside(1).parallelism.isDefined

    // To open a file takes no more than a task's share, however small that is.
    lazy val openCost: Long = own.filesOpenCostInBytes.min(policy.dataVolumePerTask)

    /** What is decided, and whether that is to leave the scan alone. */
    lazy val (decision: Decision, isKept: Boolean) = {
      val ofAll = Decider.decideSource(splits.cost(openCost), raising)
      if (isExplicit) (ofAll, false)
      else if (ofAll.tasks <= sparksTasks) keptIfNear(ofAll)
      else {
        // How wide columns are is not known, so their share alone never makes fewer tasks than Spark.
        val atLeastSparks = raising
          .copy(minParallelism = raising.minParallelism.max(sparksTasks))
          .named("minParallelism" -> SessionPolicy.AsSpark)
        keptIfNear(Decider.decideSource(splits.cost(openCost, scan.readShare), atLeastSparks))
      }
    }

    /** Whether the user sets a maximum below Spark's number. */
    def isBounded: Boolean = raising.maxParallelism < sparksTasks

    private def keptIfNear(decided: Decision): (Decision, Boolean) = {
      val tasks = decided.tasks.toLong
      if (isBounded || tasks == sparksTasks || tasks > 2L * sparksTasks || 2L * tasks < sparksTasks) (decided, false)
      else {
        val reason = s"${decided.reason.stripSuffix(".")}; left at Spark's $sparksTasks, as the difference is small."
        (decided.copy(parallelism = sparksTasks, tasks = sparksTasks, reason = reason), true)
      }
    }

    def record(tasks: Int, size: Long): DecisionRecord = {
      val record = DecisionRecord.ofSource(scan.plan.nodeName.trim, decision, policy, tasks, size)
      if (isKept) record.copy(kind = "unchanged") else record
    }

    def cut(size: Long): SparkPlan = {
      val confs = Seq(
        SQLConf.FILES_MAX_PARTITION_BYTES.key -> size.toString,
        SQLConf.FILES_OPEN_COST_IN_BYTES.key -> openCost.toString,
        SQLConf.FILES_MAX_PARTITION_NUM.key -> Int.MaxValue.toString
      )
      // Spark takes a smaller size where the files would not make so many pieces. That is left on where it changes nothing, for
      // partitions that are pruned when the query runs.
      val unpruned = openCost.max(splits.cost(openCost) / leastPieces)
      val fewer = if (size > unpruned) Seq(SQLConf.FILES_MIN_PARTITION_NUM.key -> "1") else Nil
      scan.withSession(SessionWithConf.of(scan.session, confs ++ fewer: _*), ScanTasks.CutBy -> size.toString)
    }
  }

  private object ScanOfFiles {

    /** None if Spark decides, or there is nothing to read. */
    def of(scan: FileScan, settings: SessionPolicy): Option[ScanOfFiles] = {
      val files = new ScanOfFiles(scan, settings)
      val isDecided = scan.option(ScanTasks.CutBy).isEmpty &&
        (conf.adaptiveExecutionEnabled && !inStream && scan.isListedBySpark || files.isExplicit)
      Option.when(isDecided && files.splits.bytes > 0)(files)
    }
  }

  /** Whether a streaming query runs in this thread: `StreamExecution.QUERY_ID_KEY` (3.5 to 4.2, in two packages). */
  private def inStream: Boolean = session.sparkContext.getLocalProperty("sql.streaming.queryId") != null

  private def tasksOfOption(value: String): Option[Int] = {
    val tasks = value.trim.toIntOption.filter(_ >= 1)
    if (tasks.isEmpty)
      logWarning(
        s"Option ${ScanTasks.Option} of the reader is '$value'; it must be a number, 1 or more. It is left out."
      )
    tasks
  }

  private def ofUnknownSize(range: RangeExec, settings: SessionPolicy): SparkPlan =
    settings.sourceDefault.fold(range)(tasks => range.copy(range = range.range.copy(numSlices = Some(tasks))))

  /** Planning alone, as for EXPLAIN, is no query. */
  private def reportInQuery(stage: SparkPlan, records: Seq[DecisionRecord]): Unit =
    if (records.nonEmpty)
      CurrentQuery.current(session).filter(reported.isNew(_, stage)).foreach { _ =>
        new DecisionReporter(session, slotTracker).report(stage, records.map(_ -> Nil))
      }
}

object ScanTasks {

  /** The option of a reader that says how many tasks scan its files. */
  val Option = "apportion.tasks"

  private val CutBy = "apportion.cutBy"

  /** No more tasks than this and than Spark's are made, whatever is asked for: the driver keeps all of them. */
  private val Most = 32768

  /** How near the tasks have to come to the number, as a share of it. */
  private val NearDecided = 0.05
  private val NearExplicit = 0.001

  /** The rule where it also meets plans that have no shuffle and are not adaptive for that. */
  def columnarRule(session: SparkSession, slotTracker: SlotTracker): ColumnarRule = new ColumnarRule {
    override val preColumnarTransitions: Rule[SparkPlan] = ScanTasks(session, slotTracker)
  }
}
