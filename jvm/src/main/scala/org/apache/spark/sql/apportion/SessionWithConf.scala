package org.apache.spark.sql.apportion

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.internal.{SQLConf, SessionState}

/**
 * A view of a session with other values for some configuration keys. It shares everything else with the session. Other
 * keys follow the session's current values.
 *
 * `cloneSession()` would copy the catalog, the functions and (since Spark 4) the artifacts of the session. It would
 * also leave an `ExecutionListenerBus` on the shared listener queue. A view copies nothing and registers nothing. It is
 * in Spark's namespace because all of this is private to Spark.
 */
object SessionWithConf {
  def of(session: SparkSession, confs: (String, String)*): SparkSession = {
    val parent = session.asInstanceOf[Classic.SparkSession]
    val state = new ViewBuilder(parent, ConfOverlay(parent.sessionState.conf, confs.toMap)).build()
    // newSession() and cloneSession() use this constructor. Its last arguments are initial options and, since Spark 4,
    // job tags.
    val constructor = classOf[Classic.SparkSession].getConstructors.maxBy(_.getParameterCount)
    val arguments = Seq[AnyRef](parent.sparkContext, Some(parent.sharedState), Some(state), parent.extensions)
    constructor
      .newInstance(arguments.padTo(constructor.getParameterCount, Map.empty): _*)
      .asInstanceOf[SparkSession]
  }

  /** Takes all parts from the session that Spark's builder (3.5 to 4.2) creates for a new state. */
  private final class ViewBuilder(parent: Classic.SparkSession, view: SQLConf) extends ArtifactSharingBuilder(parent) {
    private def state = parent.sessionState

    override protected def newBuilder: NewBuilder = (session, _) => new ViewBuilder(session, view)

    /** The state of the view is created before the view. */
    override protected def createClone: (Classic.SparkSession, SessionState) => SessionState = (_, state) => state

    override protected lazy val conf = view
    override protected lazy val experimentalMethods = state.experimentalMethods
    override protected lazy val functionRegistry = state.functionRegistry
    override protected lazy val tableFunctionRegistry = state.tableFunctionRegistry
    override protected lazy val catalog = state.catalog
    override protected lazy val sqlParser = state.sqlParser
    override protected lazy val resourceLoader = state.resourceLoader
    override protected def udfRegistration = state.udfRegistration
    override protected def udtfRegistration = state.udtfRegistration
    override protected def analyzer = state.analyzer
    override protected def optimizer = state.optimizer
    override protected def planner = state.planner
    override protected def streamingQueryManager = state.streamingQueryManager
    override protected def listenerManager = state.listenerManager
    override protected def columnarRules = state.columnarRules
    override protected def adaptiveRulesHolder = state.adaptiveRulesHolder
    override protected def planNormalizationRules = state.planNormalizationRules
  }
}
