package org.apache.spark.apportion.ui

import scala.util.control.NonFatal

import io.apportion.util.PerApplication
import org.apache.spark.SparkContext
import org.apache.spark.status.ElementTrackingStore
import org.apache.spark.ui.{SparkUI, SparkUITab}
import org.slf4j.LoggerFactory

/** The tab "Apportion" in an application's UI. */
private[spark] final class ApportionTab(val decisions: DecisionStore, val streams: StreamStore, ui: SparkUI)
    extends SparkUITab(ui, "apportion") {
  override val name = "Apportion"

  attachPage(new QueriesPage(this))
  attachPage(new QueryPage(this))
}

/** Adds the tab to the UI of a running application. */
object ApportionTab {
  private val log = LoggerFactory.getLogger(getClass.getName.stripSuffix("$"))
  private val attached = new PerApplication(sparkContext => sparkContext.ui.foreach(attach(sparkContext, _)))

  /** Adds the tab once. Does nothing if the application has no UI. */
  def attach(sparkContext: SparkContext): Unit = attached.of(sparkContext)

  private def attach(sparkContext: SparkContext, ui: SparkUI): Unit =
    try
      sparkContext.statusStore.store match {
        case store: ElementTrackingStore =>
          sparkContext.listenerBus.addToStatusQueue(new DecisionStore.Writer(store))
          sparkContext.listenerBus.addToStatusQueue(new StreamStore.Writer(store))
          ui.attachTab(new ApportionTab(new DecisionStore(store), new StreamStore(store), ui))
        case _ =>
      }
    catch {
      case failure @ (NonFatal(_) | _: LinkageError) => log.warn("Cannot add the Apportion tab to the UI", failure)
    }
}
