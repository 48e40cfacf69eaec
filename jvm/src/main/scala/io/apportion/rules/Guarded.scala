package io.apportion.rules

import java.util.Collections
import java.util.concurrent.ConcurrentHashMap

import scala.util.control.NonFatal

import io.apportion.settings.{SettingRegistry, Settings}
import org.apache.spark.apportion.DecisionMetrics
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.apportion.QueryConf
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreeNode
import org.apache.spark.sql.internal.SQLConf
import org.slf4j.LoggerFactory

/** An error that the user opted into with a setting. Only such errors may end a query that would run without Apportion. */
trait OptInError extends Throwable

/**
 * A rule that never breaks a query. If it throws, the query continues with Spark's plan, and the failure is logged once
 * per query. Only errors that the user opted into are thrown.
 */
trait Guarded[Plan <: TreeNode[_]] extends Rule[Plan] {
  protected def session: SparkSession

  protected def applyGuarded(plan: Plan): Plan

  /** Whether a failure must end the query. */
  protected def mustThrow(failure: Throwable): Boolean = failure.isInstanceOf[OptInError]

  /** Changes the plan while Apportion or this rule is switched off. */
  protected def applyWhenOff(plan: Plan): Plan = plan

  /** Runs with `mode=observe`. It may record decisions, but must return the plan unchanged. */
  protected def applyObserved(plan: Plan): Plan = plan

  /** Whether the rule may wait, so that its time says nothing about the cost of deciding. */
  protected def waits: Boolean = false

  /** The rule's name in `rules.disabled`, in a `RuleSwitch` of its package. */
  def publicName: String = getClass.getSimpleName

  /** The conf for the query of the plan, if the query has settings of its own. */
  protected def queryConf(plan: Plan): Option[SQLConf] =
    QueryConf.of(plan, session, () => CurrentQuery.of(session))

  final override def apply(plan: Plan): Plan = {
    val start = System.nanoTime()
    try queryConf(plan).fold(applyAllowed(plan))(SQLConf.withExistingConf(_)(applyAllowed(plan)))
    catch {
      case failure if mustThrow(failure) => throw failure
      // SET runs while settings contradict each other, so that users can correct them. No other query does.
      case _: IllegalArgumentException if SettingRegistry.problems(SQLConf.get).nonEmpty => plan
      case failure @ (NonFatal(_) | _: LinkageError | _: StackOverflowError)             =>
        DecisionMetrics.ofActive(session.sparkContext).foreach(_.failed())
        Guarded.report(this, CurrentQuery.current(session), failure)
        plan
    } finally if (!waits) DecisionMetrics.ofActive(session.sparkContext).foreach(_.ran(System.nanoTime() - start))
  }

  private def applyAllowed(plan: Plan): Plan =
    if (!Settings.Enabled.get(conf) || Settings.RulesDisabled.get(conf)(publicName)) applyWhenOff(plan)
    else if (Settings.isObserving(conf)) applyObserved(plan)
    else applyGuarded(plan)
}

private[apportion] object Guarded {
  private val log = LoggerFactory.getLogger(getClass.getName.stripSuffix("$"))
  private val MaxRemembered = 10000
  private val reported = Collections.newSetFromMap(new ConcurrentHashMap[(String, Option[Long]), java.lang.Boolean])

  /** Logs the first failure of a rule in a query. Returns whether this failure was the first. */
  def report(rule: Guarded[_], query: Option[Long], failure: Throwable): Boolean = {
    if (reported.size >= MaxRemembered) reported.clear()
    val first = reported.add((rule.ruleName, query))
    if (first) {
      val where = query.fold("a query without an execution id")(id => s"query $id")
      log.warn(
        s"${rule.ruleName} failed in $where, which goes on with Spark's own plan. " +
          s"SET ${Settings.RulesDisabled.key}=${rule.publicName} switches this rule off",
        failure
      )
    }
    first
  }
}
