package org.apache.spark.apportion.ui

import scala.util.control.NonFatal

import org.apache.spark.SparkConf
import org.apache.spark.scheduler.SparkListener
import org.apache.spark.status.{AppHistoryServerPlugin, ElementTrackingStore}
import org.apache.spark.ui.SparkUI
import org.slf4j.LoggerFactory

/**
 * The tab in the history server, for applications with decisions or streams in their event logs. FsHistoryProvider calls every
 * plugin for every application, and an error in one plugin breaks the page. So a jar for another Spark version shows no
 * tab instead of an error.
 */
final class HistoryPlugin extends AppHistoryServerPlugin {

  override def createListeners(conf: SparkConf, store: ElementTrackingStore): Seq[SparkListener] =
    HistoryPlugin.guarded(Seq.empty[SparkListener])(
      Seq(new DecisionStore.Writer(store), new StreamStore.Writer(store))
    )

  override def setupUI(ui: SparkUI): Unit = HistoryPlugin.guarded(()) {
    val decisions = new DecisionStore(ui.store.store)
    val streams = new StreamStore(ui.store.store)
    if (decisions.queries > 0 || streams.size > 0) ui.attachTab(new ApportionTab(decisions, streams, ui))
  }
}

private object HistoryPlugin {
  private val log = LoggerFactory.getLogger(getClass.getName.stripSuffix("$"))

  def guarded[T](fallback: T)(body: => T): T =
    try body
    catch {
      case failure @ (NonFatal(_) | _: LinkageError) =>
        log.warn("Cannot show the Apportion tab. Check that the Apportion jar matches this version of Spark.", failure)
        fallback
    }
}
