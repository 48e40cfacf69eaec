package io.apportion

import io.apportion.aqe.{
  AwaitSlots,
  DecideShuffleReads,
  KeepBroadcasts,
  LocalReads,
  RegisterShuffles,
  RememberOutputs,
  ReportDecisions,
  SubpartitionCounts,
  UserRepartitions
}
import io.apportion.conf.{Settings, SettingsCheck}
import io.apportion.hints.{AssignBlocks, ResolveBlockHints}
import io.apportion.history.ApplicationUser
import io.apportion.keys.KeyFunctions
import io.apportion.report.{ShowTab, TableFunctions}
import io.apportion.sources.ScanTasks
import org.apache.spark.sql.SparkSessionExtensions

/** Everything that Apportion puts into Spark: `spark.sql.extensions=io.apportion.ApportionExtension`. */
class ApportionExtension extends (SparkSessionExtensions => Unit) {

  override def apply(extensions: SparkSessionExtensions): Unit = {
    Settings.register()
    ApplicationUser.capture()

    extensions.injectCheckRule(SettingsCheck(_))

    // Which operators a hint is about
    extensions.injectResolutionRule(ResolveBlockHints(_))
    extensions.injectPlanNormalizationRule(AssignBlocks(_))

    // Before a scan runs
    extensions.injectColumnar(AwaitSlots.columnarRule)
    extensions.injectColumnar(ScanTasks.columnarRule)

    // Before a shuffle runs
    extensions.injectPlannerStrategy(_ => RegisterShuffles)
    extensions.injectQueryPostPlannerStrategyRule(UserRepartitions(_))
    extensions.injectQueryStagePrepRule(SubpartitionCounts(_))

    // When stages have finished, before what is above them is planned again
    extensions.injectRuntimeOptimizerRule(KeepBroadcasts(_))

    // When stages have finished, in this order, after Spark's own rules
    extensions.injectQueryStageOptimizerRule(AwaitSlots(_))
    extensions.injectQueryStageOptimizerRule(DecideShuffleReads(_))
    extensions.injectQueryStageOptimizerRule(DecideShuffleReads(_, splits = false))
    extensions.injectQueryStageOptimizerRule(LocalReads(_))
    extensions.injectQueryStageOptimizerRule(ReportDecisions(_))
    extensions.injectQueryStageOptimizerRule(RememberOutputs(_))

    // Where decisions are seen
    extensions.injectTableFunction(TableFunctions.decisions)
    extensions.injectTableFunction(TableFunctions.resources)
    extensions.injectTableFunction(TableFunctions.slots)
    extensions.injectCheckRule(ShowTab(_))

    // Functions of queries: even_key, task_of and others
    KeyFunctions.descriptions.foreach(extensions.injectFunction)
  }
}
