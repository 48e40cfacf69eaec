package io.apportion.history

import io.apportion.decision.ranges.Bytes
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.statsEstimation.EstimationUtils
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanExec, QueryStageExec}
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec

/** Bytes of the files and tables that a plan reads. */
private[apportion] object LeafBytes {

  /** Bytes of all leaves of known size below a plan, also below stages. */
  def of(plan: SparkPlan): Long = plan match {
    // The first plan, so that the bytes do not depend on the stages that have finished.
    case adaptive: AdaptiveSparkPlanExec => of(adaptive.initialPlan)
    case stage: QueryStageExec           => of(stage.plan)
    case reused: ReusedExchangeExec      => of(reused.child)
    case leaf if leaf.children.isEmpty   => known(leaf).getOrElse(0L)
    case other                           => other.children.map(of).foldLeft(0L)(Bytes.add)
  }

  /** Bytes by Spark's statistics; `None` if they are unknown. */
  private def known(leaf: SparkPlan): Option[Long] = for {
    logical <- leaf.logicalLink
    bytes = logical.stats.sizeInBytes
    if bytes < leaf.conf.defaultSizeInBytes
  } yield
    // The logical plan may be a projection of the leaf's columns.
    math.ceil(bytes.toDouble * rowBytes(leaf.output) / rowBytes(logical.output)).toLong

  private def rowBytes(columns: Seq[Attribute]): Double = EstimationUtils.getSizePerRow(columns).toDouble
}
