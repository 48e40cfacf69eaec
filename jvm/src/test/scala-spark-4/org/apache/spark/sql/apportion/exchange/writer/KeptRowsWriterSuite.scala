package org.apache.spark.sql.apportion.exchange.writer

import io.apportion.SparkSuite
import org.apache.spark.{MapOutputTrackerMaster, SparkEnv}
import org.apache.spark.internal.config.SHUFFLE_CHECKSUM_ALGORITHM
import org.apache.spark.scheduler.MapStatus
import org.apache.spark.shuffle.{IndexShuffleBlockResolver, ShuffleChecksumUtils}
import org.apache.spark.shuffle.sort.SortShuffleManager
import org.apache.spark.sql.{DataFrame, SparkSession}
import org.apache.spark.sql.apportion.exchange.AdaptiveExchangeExec
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanHelper, ShuffleQueryStageExec}

class KeptRowsWriterSuite extends SparkSuite with AdaptiveSparkPlanHelper {
  override protected def generatesCode: Boolean = true

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

  test("rows of several mebibytes are Spark's rows, whatever their place among small ones") {
    for (large <- Seq("id = 0", "id = 7", "id = 19", "id IN (0, 1, 18, 19)", "true")) {
      val sql =
        s"SELECT /*+ REPARTITION(id) */ id, repeat(string(id), if($large, 5000000, 1)) AS text FROM numbers WHERE id < 20"
      def rows(settings: (String, String)*) = withSession(settings: _*) { session =>
        session.sql(sql).selectExpr("id", "md5(text)").collect().toSeq.sortBy(_.getLong(0))
      }
      assert(rows() == rows("enabled" -> "false"), large)
    }
  }

  for ((name, isLarge) <- Seq("few" -> false, "many" -> true))
    test(s"$name rows are counted as Spark counts them, with the bytes of their files and checksums of their blocks") {
      val sparks = withSession("enabled" -> "false") { session =>
        val plain = query(session, isLarge)
        plain.collect()
        collectFirst(plain.queryExecution.executedPlan) { case stage: ShuffleQueryStageExec => stage.shuffle }.get
      }
      withSession() { session =>
        val adaptive = query(session, isLarge)
        adaptive.collect()
        val shuffle = shuffleOf(adaptive)
        val blocks = shuffle.goal.tree(shuffle.outputPartitioning.numPartitions).blocks
        val bytes = mapOutputs(shuffle).map { output =>
          val data = files.getDataFile(shuffle.shuffleId, output.mapId)
          val index = files.getIndexFile(shuffle.shuffleId, output.mapId)
          val algorithm = SparkEnv.get.conf.get(SHUFFLE_CHECKSUM_ALGORITHM)
          val checksums = files.getChecksumFile(shuffle.shuffleId, output.mapId, algorithm)
          assert(ShuffleChecksumUtils.compareChecksums(blocks, algorithm, checksums, data, index))
          data.length
        }
        for (metric <- Seq("shuffleRecordsWritten", "dataSize"))
          assert(shuffle.metrics(metric).value == sparks.metrics(metric).value)
        assert(shuffle.metrics("shuffleBytesWritten").value == bytes.sum && bytes.forall(_ > 0))
        assert(shuffle.metrics("shuffleWriteTime").value > 0)
      }
    }
}
