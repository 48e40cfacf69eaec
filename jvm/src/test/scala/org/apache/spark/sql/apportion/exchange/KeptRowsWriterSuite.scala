package org.apache.spark.sql.apportion.exchange

import io.apportion.SparkSuite
import io.apportion.decision.ranges.PartitionTree
import org.apache.spark.{MapOutputTrackerMaster, SparkEnv}
import org.apache.spark.internal.config.SHUFFLE_CHECKSUM_ALGORITHM
import org.apache.spark.scheduler.MapStatus
import org.apache.spark.shuffle.{IndexShuffleBlockResolver, ShuffleChecksumUtils}
import org.apache.spark.shuffle.sort.SortShuffleManager
import org.apache.spark.sql.{DataFrame, SparkSession}
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanHelper, ShuffleQueryStageExec}

class KeptRowsWriterSuite extends SparkSuite with AdaptiveSparkPlanHelper {

  /** Rows of about 20 MB in all, or of few bytes. */
  private def query(session: SparkSession, isLarge: Boolean): DataFrame =
    session.sql(s"SELECT /*+ REPARTITION(id) */ id, repeat(string(id), ${if (isLarge) 200 else 1}) FROM numbers")

  private def shuffleOf(query: DataFrame): AdaptiveExchangeExec =
    collectFirst(query.queryExecution.executedPlan) { case stage: ShuffleQueryStageExec =>
      stage.shuffle.asInstanceOf[AdaptiveExchangeExec]
    }.get

  private def files: IndexShuffleBlockResolver =
    SparkEnv.get.shuffleManager.asInstanceOf[SortShuffleManager].shuffleBlockResolver

  private def mapOutputs(shuffle: AdaptiveExchangeExec): Seq[MapStatus] = SparkEnv.get.mapOutputTracker
    .asInstanceOf[MapOutputTrackerMaster]
    .shuffleStatuses(shuffle.shuffleId)
    .withMapStatuses(_.toSeq)

  for (isLarge <- Seq(false, true); partitions <- Seq(200, 2000))
    test(s"${if (isLarge) "many" else "few"} rows in blocks for $partitions partitions are Spark's rows") {
      def rows(settings: (String, String)*) =
        withSession(settings: _*)(session => query(session, isLarge).collect().toSeq.sortBy(_.getLong(0)))
      val number = "spark.sql.shuffle.partitions" -> partitions.toString
      assert(rows(number, "dataVolumePerTask" -> "1kb", "minTaskVolume" -> "1kb") == rows("enabled" -> "false"))
    }

  test("few rows are counted with the bytes of their files, and their blocks with checksums") {
    withSession() { session =>
      val small = query(session, isLarge = false)
      val rows = small.collect().length
      val shuffle = shuffleOf(small)
      val blocks = PartitionTree.of(shuffle.outputPartitioning.numPartitions).blocks
      val bytes = mapOutputs(shuffle).map { output =>
        val data = files.getDataFile(shuffle.shuffleId, output.mapId)
        val index = files.getIndexFile(shuffle.shuffleId, output.mapId)
        val algorithm = SparkEnv.get.conf.get(SHUFFLE_CHECKSUM_ALGORITHM)
        val checksums = files.getChecksumFile(shuffle.shuffleId, output.mapId, algorithm)
        assert(ShuffleChecksumUtils.compareChecksums(blocks, algorithm, checksums, data, index))
        data.length
      }
      assert(shuffle.metrics("shuffleRecordsWritten").value == rows)
      assert(shuffle.metrics("shuffleBytesWritten").value == bytes.sum && bytes.forall(_ > 0))
      assert(shuffle.metrics("dataSize").value > rows && shuffle.metrics("shuffleWriteTime").value > 0)
    }
  }
}
