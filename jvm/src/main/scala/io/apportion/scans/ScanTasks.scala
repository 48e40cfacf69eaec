package io.apportion.scans

import io.apportion.decision.{Decider, Decision, Policy, Sentence, SourceKind, ValueSource}
import io.apportion.hints.{BlockHints, OperatorBlock}
import io.apportion.outcomes.{EarlierRuns, OutcomeListener, StageMetrics}
import io.apportion.report.{DecisionRecord, DecisionReporter, ReportSource, ReportedDecision}
import io.apportion.rules.{CurrentQuery, Guarded}
import io.apportion.settings.{ScanSettings, SessionPolicy}
import io.apportion.scans.ScanTasks.{Ignore, ReportedScan}
import io.apportion.util.BoundedMap
import org.apache.spark.sql.apportion.SessionWithConf
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.{RangeExec, SparkPlan}
import org.apache.spark.sql.execution.exchange.Exchange
import org.apache.spark.sql.internal.SQLConf

/**
 * Decides how many tasks scan files: from the bytes of the files, or from a hint, a reader option or a setting. Spark
 * splits files by confs of the session in which the scan was created. So the scan gets a view of that session with
 * other values.
 *
 * Unless the number of tasks is set explicitly, a scan is left to Spark if
 *  - Spark makes at least half and at most twice as many tasks as decided,
 *  - adaptive execution is off, as it is for streams with state, and for all streams before Spark 4.1,
 *  - another library's index lists the files, because listing them may need a Spark job.
 *
 * A task reads whole row groups or stripes of formats that have them, so tasks beyond their number read nothing. Files
 * that cannot be split, and the way in which Spark packs files, may change the number by a few tasks.
 */
case class ScanTasks(session: SparkSession, sources: Seq[ReportSource]) extends Guarded[SparkPlan] {

  /**
   * Stages with reported scans, so that the scans of equal stages are reported once. If an exchange occurs several times
   * in a query, Spark creates and plans a stage for each occurrence before it finds that it can reuse the first
   * (`AdaptiveSparkPlanExec.createNonResultQueryStages`, 3.5 to 4.2).
   */
  private val reported = new BoundedMap[(Long, Int), Unit](1000)

  override protected def applyGuarded(plan: SparkPlan): SparkPlan =
    if (ScanSettings.SourcesEnabled.get(conf)) {
      val settings = settingsNow
      val stage = ScanStage.of(plan, session)
      val records = Seq.newBuilder[ReportedScan]
      val cut = plan.transformUp {
        case range: RangeExec if range.range.numSlices.isEmpty => ofUnknownSize(range, settings)
        case node                                              =>
          filesOf(node, stage, settings).fold(node) { files =>
            val (scan, record) = files.decided
            records += record
            scan
          }
      }
      reportInQuery(plan, stage, records.result())
      cut
    } else plan

  override protected def applyObserved(plan: SparkPlan): SparkPlan = {
    reportInQuery(plan, None, plan.collect { case node => filesOf(node, None, settingsNow).map(_.observed) }.flatten)
    plan
  }

  /** Read again for every plan, because the number of task slots changes while the session lives. */
  private def settingsNow = new SessionPolicy(conf, session.sparkContext)

  /** `None` if the node is no file scan, or a scan that is left to Spark or reads no bytes. */
  private def filesOf(node: SparkPlan, stage: Option[ScanStage], settings: => SessionPolicy): Option[ScanOfFiles] =
    node match {
      case FileScan(scan) if ScanSettings.SourcesEnabled.get(conf) =>
        val files = new ScanOfFiles(scan, stage, settings)
        val isDecided = scan.option(ScanTasks.CutBy).isEmpty &&
          (conf.adaptiveExecutionEnabled && scan.isListedBySpark || files.isSet)
        Option.when(isDecided && files.splits.bytes > 0)(files)
      case _ => None
    }

  /**
   * The decision and its policy for a file scan, from the files that are known before it runs. `None` for other plans
   * and for scans of no bytes.
   */
  def decide(plan: SparkPlan): Option[(Decision, Policy)] =
    filesOf(plan, None, settingsNow).map(files => (files.decision, files.policy))

  /** The files of a scan, the tasks that Spark would make, and Apportion's decision. */
  private final class ScanOfFiles(scan: FileScan, stage: Option[ScanStage], settings: SessionPolicy) {
    private val own = scan.session.sessionState.conf
    private val hints = OperatorBlock.ofScan(scan.plan).fold(BlockHints.none)(_.hints)

    lazy val splits: FileSplits = scan.files

    private lazy val leastPieces: Int = own.filesMinPartitionNum.getOrElse(
      own.getConf(SQLConf.LEAF_NODE_DEFAULT_PARALLELISM).getOrElse(scan.session.sparkContext.defaultParallelism)
    )

    /** The size at which Spark would split the files, and the tasks that this makes (`FilePartition`, 3.5 to 4.2). */
    private lazy val (sparksSize: Long, sparksTasks: Int) = {
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

    private val ofReader = scan.option(ScanTasks.ReaderOption).flatMap(tasksOfOption)

    private def policyBeside(sparks: Int): Policy = {
      val ofSession = ScanPolicy.of(settings, own, sparks, volumeIsHinted = hints.dataVolumePerTask.isDefined)
      hints.overSource(
        ofReader.fold(ofSession)(ofSession.withParallelism(_, ScanTasks.ByReader))
      )
    }

    private lazy val raising: Policy = {
      val policy = policyBeside(sparksTasks)
      stage.fold(policy)(_.withMemory(policy, splits.bytes, settings))
    }

    /** Scans use all slots in every mode except `active`, but declare them as a requirement only in reactive mode. */
    lazy val policy: Policy = if (settings.reactive) raising else raising.copy(slots = None)

    private lazy val isExplicit: Boolean = raising.parallelism.isDefined

    /** [[isExplicit]], without listing the files. */
    def isSet: Boolean = policyBeside(1).parallelism.isDefined

    // The cost to open a file must not exceed the target size per task.
    private lazy val openCost: Long = own.filesOpenCostInBytes.min(policy.dataVolumePerTask)

    /** The decision, and whether it keeps Spark's number of tasks. */
    lazy val (decision: Decision, isKept: Boolean) = {
      val ofAll = Decider.decideSource(splits.cost(openCost), raising)
      if (isExplicit) (ofAll, false)
      else if (raising.setBy.contains(EarlierRuns.Memory))
        (Decider.decideSource(splits.cost(openCost, scan.readShare), raising), false)
      else if (ofAll.tasks <= sparksTasks) keptIfNear(ofAll)
      else {
        // The real widths of columns are unknown, so their share alone must not make fewer tasks than Spark.
        val atLeastSparks = raising
          .copy(minParallelism = raising.minParallelism.max(sparksTasks))
          .withSources("minParallelism" -> ScanPolicy.AsSpark)
        keptIfNear(Decider.decideSource(splits.cost(openCost, scan.readShare), atLeastSparks))
      }
    }

    /** Whether the user sets a maximum below Spark's number. */
    private def isBounded: Boolean = raising.maxParallelism < sparksTasks

    private def keptIfNear(decided: Decision): (Decision, Boolean) = {
      val tasks = decided.tasks.toLong
      if (isBounded || tasks == sparksTasks || tasks > 2L * sparksTasks || 2L * tasks < sparksTasks) (decided, false)
      else {
        val text = s"${decided.sentence.text}; Apportion keeps Spark's $sparksTasks because the difference is small"
        (decided.copy(parallelism = sparksTasks, tasks = sparksTasks, sentence = Sentence(text)), true)
      }
    }

    /** The scan with the decided number of tasks, and its record. */
    def decided: (SparkPlan, ReportedScan) = {
      val wanted = decision.parallelism.min(sparksTasks.max(ScanTasks.Most))
      if (sparksTasks == wanted) (scan.plan, reported(record(wanted, sparksSize), scan.plan))
      else {
        val within = if (isExplicit) ScanTasks.NearExplicit else if (isBounded) 0 else ScanTasks.NearDecided
        val size = splits.sizeFor(wanted, openCost, within)
        val plan = cut(size)
        (plan, reported(record(splits.tasks(size, openCost).toInt, size), plan))
      }
    }

    /** The record of a scan that stays as it is. */
    def observed: ReportedScan = {
      val (tasks, size) = (sparksTasks, sparksSize.min(decision.inputBytes))
      reported(record(tasks, size).observed(tasks, size, decision.inputBytes / tasks), scan.plan)
    }

    private def record(tasks: Int, size: Long): DecisionRecord = {
      val ofFormula = DecisionRecord.ofSource(scan.plan.nodeName.trim, decision, policy, tasks, size)
      val record = ofFormula.copy(
        requirement = hints.slots.map(_.value).orElse(ofFormula.requirement),
        sources = ofFormula.sources ++ hints.slots.map("slots" -> _.setBy.text)
      )
      if (isKept) record.copy(kind = "unchanged") else record
    }

    private def reported(record: DecisionRecord, plan: SparkPlan): ReportedScan = {
      val metric = plan.metrics.get("numOutputRows").map(_.id)
      ReportedScan(ReportedDecision(record, Some(policy), scanMetric = metric), splits.bytes)
    }

    private def cut(size: Long): SparkPlan = {
      val confs = Seq(
        SQLConf.FILES_MAX_PARTITION_BYTES.key -> size.toString,
        SQLConf.FILES_OPEN_COST_IN_BYTES.key -> openCost.toString,
        SQLConf.FILES_MAX_PARTITION_NUM.key -> Int.MaxValue.toString
      )
      // Spark uses a smaller size if the files would make fewer pieces than its minimum. Lift the minimum only if it
      // would change the size: it still matters if partitions are pruned at run time.
      val unpruned = openCost.max(splits.cost(openCost) / leastPieces)
      val fewer = if (size > unpruned) Seq(SQLConf.FILES_MIN_PARTITION_NUM.key -> "1") else Nil
      scan.withSession(SessionWithConf.of(scan.session, confs ++ fewer: _*), ScanTasks.CutBy -> size.toString)
    }
  }

  private def tasksOfOption(value: String): Option[Int] = {
    val tasks = value.trim.toIntOption.filter(_ >= 1)
    if (tasks.isEmpty)
      logWarning(
        s"Reader option ${ScanTasks.ReaderOption} is '$value', but must be a whole number of 1 or more. It is ignored."
      )
    tasks
  }

  private def ofUnknownSize(range: RangeExec, settings: SessionPolicy): SparkPlan =
    settings.sourceDefault.fold(range)(tasks => range.copy(range = range.range.copy(numSlices = Some(tasks))))

  /** Reports decisions of a running query. EXPLAIN only plans, so it reports nothing. */
  private def reportInQuery(plan: SparkPlan, stage: Option[ScanStage], scans: Seq[ReportedScan]): Unit =
    if (scans.nonEmpty)
      CurrentQuery.current(session).filter(isNew(_, plan)).foreach { _ =>
        val records = new DecisionReporter(session, sources).report(plan, scans.map(_.decision))
        for ((scan, record) <- scans.zip(records); metric <- scan.decision.scanMetric)
          OutcomeListener.watch(session, Seq(record), Some(metric), stage.fold(Ignore)(_.receiver(scan.bytes, record)))
      }

  /** Whether no equal stage of the query was reported before. */
  private def isNew(query: Long, stage: SparkPlan): Boolean = stage match {
    case exchange: Exchange if exchange.conf.exchangeReuseEnabled => reported.add((query, exchange.semanticHash()), ())
    case _                                                        => true
  }
}

object ScanTasks {

  /** The reader option that sets the number of tasks that scan its files. */
  val ReaderOption = "apportion.tasks"

  private val ByReader = ValueSource(SourceKind.ReaderOption, s"reader option $ReaderOption")

  private val CutBy = "apportion.cutBy"

  private val Ignore: StageMetrics => Unit = _ => ()

  /** A decision about a scan, with the bytes of its files. */
  private final case class ReportedScan(decision: ReportedDecision, bytes: Long)

  /** Maximum number of tasks of a scan, unless Spark itself makes more. The driver keeps all tasks in memory. */
  private val Most = 32768

  /** Tolerated difference between the number of tasks and the decided or explicit number, as a share of it. */
  private val NearDecided = 0.05
  private val NearExplicit = 0.001
}
