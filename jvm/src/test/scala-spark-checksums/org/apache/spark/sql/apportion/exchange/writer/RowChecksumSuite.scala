package org.apache.spark.sql.apportion.exchange.writer

import io.apportion.SparkSuite
import org.apache.spark.{MapOutputTrackerMaster, SparkEnv}
import org.apache.spark.sql.apportion.exchange.AdaptiveExchangeExec
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanHelper, ShuffleQueryStageExec}

class RowChecksumSuite extends SparkSuite with AdaptiveSparkPlanHelper {

  // Off in Spark 4.1, and on in 4.2.
  private val enabled = "spark.sql.shuffle.orderIndependentChecksum.enabled" -> "true"

  private def checksum(id: String, bytesOfRow: Int): Long = withSession(enabled) { session =>
    val query = session
      .range(0, 20000, 1, 1)
      .selectExpr(s"$id AS id", s"repeat(string($id), ${bytesOfRow / 5}) AS text")
      .hint("repartition", "id")
    query.collect()
    val shuffle = collectFirst(query.queryExecution.executedPlan) { case stage: ShuffleQueryStageExec =>
      stage.shuffle.asInstanceOf[AdaptiveExchangeExec]
    }.get
    SparkEnv.get.mapOutputTracker
      .asInstanceOf[MapOutputTrackerMaster]
      .shuffleStatuses(shuffle.shuffleId)
      .withMapStatuses(_.head.checksumValue)
  }

  // 20,000 rows of 100 bytes are all in memory, and of 1,000 bytes they are written in batches.
  for ((name, bytes) <- Seq("few" -> 100, "many" -> 1000))
    test(s"the checksum of $name rows does not depend on their order, and changes with a row") {
      val expected = checksum("id", bytes)
      assert(checksum("19999 - id", bytes) == expected && expected != 0)
      assert(checksum("if(id = 7, 20007, id)", bytes) != expected)
    }
}
