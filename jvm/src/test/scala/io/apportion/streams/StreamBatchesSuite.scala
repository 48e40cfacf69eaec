package io.apportion.streams

import java.nio.file.Files

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import io.apportion.{PythonBridge, SparkSuite}
import org.apache.spark.sql.functions.{broadcast, expr}
import org.apache.spark.sql.streaming.StreamingQuery

/** What Python reads about the batches of a stream. Nine of ten rows of the stream have the same key. */
class StreamBatchesSuite extends SparkSuite {
  private val json = new ObjectMapper
  private lazy val source = Files.createTempDirectory("batches").resolve("files").toString

  override protected def beforeAll(): Unit = {
    super.beforeAll()
    spark.range(0, 20000, 1, 2).selectExpr("id", "if(id % 10 = 0, id, 0) AS k").write.parquet(source)
  }

  private def withStream(body: StreamingQuery => Unit): Unit =
    withSession("spark.sql.shuffle.partitions" -> "4") { session =>
      val few = session.range(100).withColumnRenamed("id", "f")
      val files = session.readStream.schema("id LONG, k LONG").option("maxFilesPerTrigger", 1).parquet(source)
      val rows = files.join(broadcast(few), expr("k % 100 = f")).dropDuplicates("k")
      val query = rows.writeStream
        .format("noop")
        .option("checkpointLocation", Files.createTempDirectory("checkpoint").toString)
        .start()
      try body(query)
      finally query.stop()
    }

  private def await(query: StreamingQuery, after: String, millis: Long): JsonNode =
    json.readTree(PythonBridge.awaitBatch(spark, query, after, millis))

  test("a batch has the bytes of each state partition and of its broadcast tables") {
    withStream { query =>
      query.processAllAvailable()
      val found = await(query, after = null, millis = 0)
      assert(found.path("progress").elements.asScala.map(_.path("batchId").asInt).toSeq.distinct == Seq(0, 1))
      assert(!found.path("ended").asBoolean)
      val shuffled = found.path("bytes").path("shuffled").elements.asScala.map(_.asLong).toSeq
      assert(shuffled.size == 4)
      assert(shuffled.max > shuffled.sum / 4)
      assert(found.path("bytes").path("broadcast").asLong > 0)
    }
  }

  test("a known batch is not returned again") {
    withStream { query =>
      query.processAllAvailable()
      val last = query.lastProgress.timestamp
      assert(await(query, last, millis = 100).path("progress").isEmpty)
    }
  }

  test("the wait for a batch ends with the query") {
    withStream { query =>
      query.processAllAvailable()
      query.stop()
      val found = await(query, query.lastProgress.timestamp, millis = Long.MaxValue / 1000000)
      assert(found.path("ended").asBoolean)
      assert(found.path("bytes").isNull)
    }
  }
}
