package org.apache.spark.apportion

import scala.collection.mutable

import com.codahale.metrics.{Counter, MetricRegistry}
import io.apportion.decision.Kind
import org.apache.spark.SparkContext
import org.apache.spark.metrics.source.Source

/**
 * Counters of an application for Spark's metrics system, which passes them to JMX, Prometheus and other sinks. It is in
 * Spark's namespace because `Source` is private to Spark.
 */
final class DecisionMetrics private extends Source {
  override val sourceName: String = "apportion"
  override val metricRegistry: MetricRegistry = new MetricRegistry

  private val decisions = metricRegistry.counter("decisions")
  private val byLimit: Map[String, Counter] =
    Kind.all.map(kind => kind.name -> metricRegistry.counter(s"limits.${kind.name}")).toMap
  private val ruleNanos = metricRegistry.counter("rules.nanos")
  private val ruleFailures = metricRegistry.counter("rules.failures")
  private val spilledBytes = metricRegistry.counter("tasks.spilledBytes")
  private val memoryFailures = metricRegistry.counter("tasks.memoryFailures")

  /** Counts a decision and the limits that changed its number of tasks. */
  def decided(clamps: Seq[String]): Unit = {
    decisions.inc()
    clamps.flatMap(byLimit.get).foreach(_.inc())
  }

  /** Counts the time of a rule. */
  def ran(nanos: Long): Unit = ruleNanos.inc(nanos)

  /** Counts a rule that failed, so that its query went on with Spark's plan. */
  def failed(): Unit = ruleFailures.inc()

  /** Counts what happened to the tasks of a decision. */
  def ended(spilled: Long, outOfMemory: Int): Unit = {
    spilledBytes.inc(spilled)
    memoryFailures.inc(outOfMemory.toLong)
  }
}

object DecisionMetrics {
  private val byContext = mutable.WeakHashMap.empty[SparkContext, DecisionMetrics]

  /** The counters of an application, which Spark's metrics system knows from now on; `None` if it has ended. */
  def ofActive(sparkContext: SparkContext): Option[DecisionMetrics] = synchronized {
    byContext.get(sparkContext).orElse {
      Option(sparkContext.env).filterNot(_ => sparkContext.isStopped).map { env =>
        val metrics = new DecisionMetrics
        byContext.put(sparkContext, metrics)
        env.metricsSystem.registerSource(metrics)
        metrics
      }
    }
  }
}
