package org.apache.spark.apportion.ui

import scala.util.control.NonFatal

import org.apache.spark.SparkConf
import org.apache.spark.scheduler.SparkListener
import org.apache.spark.status.{AppHistoryServerPlugin, ElementTrackingStore}
import org.apache.spark.ui.SparkUI
import org.slf4j.LoggerFactory

/**
 * The tab in the history server, for applications that have decisions in their logs. FsHistoryProvider calls every plugin for every
 * application, and an error of one ends the page: a jar for another Spark must give no tab instead.
 */
final class HistoryPlugin extends AppHistoryServerPlugin {

  override def createListeners(conf: SparkConf, store: ElementTrackingStore): Seq[SparkListener] =
    HistoryPlugin.guarded(Seq.empty[SparkListener])(Seq(new DecisionStore.Writer(store)))

  override def setupUI(ui: SparkUI): Unit = HistoryPlugin.guarded(()) {
    val decisions = new DecisionStore(ui.store.store)
    if (decisions.queries > 0) ui.attachTab(new ApportionTab(decisions, ui))
  }
}

private object HistoryPlugin {
  private val log = LoggerFactory.getLogger(getClass.getName.stripSuffix("$"))

  def guarded[T](otherwise: T)(body: => T): T =
    try body
    catch {
      case failure @ (NonFatal(_) | _: LinkageError) =>
        log.warn("Apportion has no tab in the history server. Is its jar the one for this version of Spark?", failure)
        otherwise
    }
}
