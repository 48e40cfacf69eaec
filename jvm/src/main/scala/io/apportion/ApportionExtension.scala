package io.apportion

import io.apportion.groups.{MultipliedRows, UserRepartitions}
import io.apportion.hints.{AssignBlocks, GroupHints, ResolveBlockHints}
import io.apportion.history.{ApplicationUser, HistorySettings}
import io.apportion.joins.{BroadcastHints, DemoteBroadcasts, JoinRules, PreferHashJoins, RememberBroadcasts}
import io.apportion.keys.KeyFunctionRegistry
import io.apportion.memory.RowHolders
import io.apportion.outcomes.{EarlierRuns, OutcomeListener, OutcomeSettings}
import io.apportion.policies.ApplyPolicies
import io.apportion.reads.{DecideShuffleReads, DecisionTexts, LocalReads, ReportDecisions}
import io.apportion.report.{DecisionTable, ListenerEvents}
import io.apportion.resources.{AwaitSlots, RescalingPolicy, ResourceHistory, SlotCoordinator}
import io.apportion.resources.planned.PlannedSlots
import io.apportion.scans.ScanTasks
import io.apportion.settings.{QuerySettings, ResourceSettings, ScanSettings, SettingRegistry, Settings, SettingsCheck}
import io.apportion.shufflewrites.{AdaptiveWrites, ReplaceExchange}
import io.apportion.streams.StreamLog
import io.apportion.writes.{
  DropRebalances,
  RebalanceWrites,
  SizeFileScans,
  SizeFileShuffles,
  SizeFiles,
  WriteAdvisor,
  WriteSettings
}
import org.apache.spark.apportion.ui.ShowTab
import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.{ColumnarRule, SparkPlan}

/**
 * Everything that Apportion adds to Spark: `spark.sql.extensions=io.apportion.ApportionExtension`.
 *
 * A query meets the rules in this order:
 *
 *  1. Analysis. `ResolveBlockHints` replaces hints by marks, as Spark removes hints that it does not know. `SettingsCheck` refuses
 *     settings that contradict each other.
 *  1. After analysis, before the optimizer moves operators: `ApplyPolicies` finds the rules of the policy file that
 *     match, `AssignBlocks` notes the query block of each operator, and `RebalanceWrites` adds a rebalance.
 *  1. Planning. `DemoteBroadcasts` replaces joins before Spark adds their exchanges. `UserRepartitions` keeps
 *     `repartition(n)`, which Spark may drop.
 *  1. Plans without a shuffle are not adaptive. The columnar rules `AwaitSlots` and `ScanTasks` are the only ones that see these.
 *  1. Before stages run, and again each time that some have finished: `SizeFileShuffles` changes the target size for the
 *     stage that writes files. `AdaptiveWrites` gives the shuffles of the query their number of partitions, and marks
 *     those that it replaces when their stages are created.
 *  1. When a stage has finished, Spark optimizes the rest of the query again. `DropRebalances` removes a rebalance that is
 *     not needed. `BroadcastHints` corrects a hint of Spark's that depends on the number of partitions. `PreferHashJoins` joins
 *     small shuffles without sorts.
 *  1. Before each stage starts, after Spark's own rules, whose partitions the following rules replace: `AwaitSlots`;
 *     `DecideShuffleReads`, first with splits and then without, as Spark reverts a rule that breaks the plan's requirements;
 *     `SizeFiles`, which decides again for the stage that writes files; `LocalReads`, which needs the layout that is
 *     left then; `ReportDecisions`, which records that layout; `RememberBroadcasts`.
 */
class ApportionExtension extends (SparkSessionExtensions => Unit) {

  override def apply(extensions: SparkSessionExtensions): Unit = {
    ApportionExtension.registerSettings()
    ApplicationUser.capture()
    extensions.injectCheckRule(SettingsCheck(_, RescalingPolicy.check))

    // What changes the policy of a stage; the last one wins
    val advisors = Seq(WriteAdvisor, GroupHints, MultipliedRows, EarlierRuns, RowHolders)
    val reportSources =
      Seq(
        GroupHints,
        DemoteBroadcasts,
        PreferHashJoins,
        ListenerEvents,
        DecisionTexts,
        SlotCoordinator,
        OutcomeListener
      )

    // Policies, and query blocks with their hints
    extensions.injectResolutionRule(ResolveBlockHints(_))
    extensions.injectPlanNormalizationRule(ApplyPolicies(_))
    extensions.injectPlanNormalizationRule(AssignBlocks(_))
    extensions.injectPlanNormalizationRule(RebalanceWrites(_))

    // Before a scan runs
    extensions.injectColumnar(session => columnar(AwaitSlots(session, advisors, isAdaptive = false)))
    extensions.injectColumnar(session => columnar(SizeFileScans(session)))
    extensions.injectColumnar(session => columnar(ScanTasks(session, reportSources)))

    // Before a shuffle runs
    extensions.injectQueryPostPlannerStrategyRule(DemoteBroadcasts(_))
    extensions.injectQueryPostPlannerStrategyRule(UserRepartitions(_))
    extensions.injectQueryStagePrepRule(SizeFileShuffles(_))
    extensions.injectQueryStagePrepRule(AdaptiveWrites(_, advisors))
    extensions.injectColumnar(ReplaceExchange.columnarRule)

    // When stages have finished, before Spark plans the rest again
    extensions.injectRuntimeOptimizerRule(DropRebalances(_))
    extensions.injectRuntimeOptimizerRule(BroadcastHints(_))
    extensions.injectRuntimeOptimizerRule(new PreferHashJoins(_))

    // When stages have finished, before the next one starts
    extensions.injectQueryStageOptimizerRule(AwaitSlots(_, advisors))
    extensions.injectQueryStageOptimizerRule(DecideShuffleReads(_, advisors))
    extensions.injectQueryStageOptimizerRule(DecideShuffleReads(_, advisors, splits = false))
    extensions.injectQueryStageOptimizerRule(SizeFiles(_))
    extensions.injectQueryStageOptimizerRule(LocalReads(_))
    extensions.injectQueryStageOptimizerRule(ReportDecisions(_, advisors, reportSources))
    extensions.injectQueryStageOptimizerRule(RememberBroadcasts(_))

    // For users
    extensions.injectTableFunction(DecisionTable.function)
    extensions.injectTableFunction(ResourceHistory.function)
    extensions.injectTableFunction(PlannedSlots.function(advisors))
    extensions.injectTableFunction(StreamLog.function)
    extensions.injectCheckRule(ShowTab(_))
    KeyFunctionRegistry.descriptions.foreach(extensions.injectFunction)
  }

  /**
   * The rule for all plans. Spark does not run plans without shuffles and subqueries adaptively (`InsertAdaptiveSparkPlan`,
   * 3.5 to 4.2), but calls columnar rules for them when the query has its execution id.
   */
  private def columnar(rule: Rule[SparkPlan]): ColumnarRule = new ColumnarRule {
    override def preColumnarTransitions: Rule[SparkPlan] = rule
  }
}

private[apportion] object ApportionExtension {

  /** Registers the settings and the rules of all packages. The documentation has the settings in this order. */
  def registerSettings(): Unit = SettingRegistry.add(
    ScanSettings,
    ResourceSettings,
    Settings,
    QuerySettings,
    OutcomeSettings,
    WriteSettings,
    HistorySettings,
    JoinRules
  )
}
