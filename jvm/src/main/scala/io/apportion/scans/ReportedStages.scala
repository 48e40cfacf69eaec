package io.apportion.scans

import java.util.{LinkedHashMap, Map => JavaMap}

import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.exchange.Exchange

/**
 * Stages with reported scans, so that the scans of equal stages are reported once.
 *
 * If an exchange occurs several times in a query, Spark creates and plans a stage for each occurrence before it finds
 * that it can reuse the first (`AdaptiveSparkPlanExec.createNonResultQueryStages`, 3.5 to 4.2).
 */
private[apportion] final class ReportedStages {
  private val stages = new LinkedHashMap[(Long, Int), Unit] {
    override def removeEldestEntry(eldest: JavaMap.Entry[(Long, Int), Unit]): Boolean = size > 1000
  }

  /** Whether no equal stage of the query was reported before. */
  def isNew(query: Long, stage: SparkPlan): Boolean = stage match {
    case exchange: Exchange if exchange.conf.exchangeReuseEnabled =>
      val hash = exchange.semanticHash()
      synchronized {
        val isFirst = !stages.containsKey((query, hash))
        stages.put((query, hash), ())
        isFirst
      }
    case _ => true
  }
}
