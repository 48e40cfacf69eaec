package io.apportion.scans

import java.util.{LinkedHashMap, Map => JavaMap}

import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.exchange.Exchange

/**
 * The stages whose scans have been reported.
 *
 * Spark makes a stage for each place of an exchange in a query, and plans it, before it finds that it has the same stage already
 * (`AdaptiveSparkPlanExec.createNonResultQueryStages`, 3.5 to 4.2).
 */
private[apportion] final class ReportedStages {
  private val stages = new LinkedHashMap[(Long, Int), Unit] {
    override def removeEldestEntry(eldest: JavaMap.Entry[(Long, Int), Unit]): Boolean = size > 1000
  }

  /** Whether this is the first of the query's stages that are equal to it. */
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
