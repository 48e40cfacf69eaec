package io.apportion.scans

import io.apportion.util.BoundedMap
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.exchange.Exchange

/**
 * Stages with reported scans, so that the scans of equal stages are reported once.
 *
 * If an exchange occurs several times in a query, Spark creates and plans a stage for each occurrence before it finds
 * that it can reuse the first (`AdaptiveSparkPlanExec.createNonResultQueryStages`, 3.5 to 4.2).
 */
private[apportion] final class ReportedStages {
  private val stages = new BoundedMap[(Long, Int), Unit](1000)

  /** Whether no equal stage of the query was reported before. */
  def isNew(query: Long, stage: SparkPlan): Boolean = stage match {
    case exchange: Exchange if exchange.conf.exchangeReuseEnabled => stages.add((query, exchange.semanticHash()), ())
    case _                                                        => true
  }
}
