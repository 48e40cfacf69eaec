package io.apportion.streams

import java.nio.file.Files

import scala.collection.mutable

import io.apportion.SparkSuite
import io.apportion.report.{DecisionLog, DecisionRecord}
import org.apache.spark.SPARK_VERSION
import org.apache.spark.apportion.Listeners
import org.apache.spark.sql.{DataFrame, Dataset, Row, SparkSession}
import org.apache.spark.sql.streaming.{DataStreamWriter, Trigger}

/**
 * Batches of streams: since Spark 4.1 those without state run adaptively, and Apportion decides them like queries. The
 * stream reads three files, one in each batch.
 */
class StatelessStreamSuite extends SparkSuite {
  private val files = 3
  private lazy val source = Files.createTempDirectory("stream").resolve("files").toString
  private val shuffled = "spark.sql.autoBroadcastJoinThreshold" -> "-1"

  override protected def beforeAll(): Unit = {
    super.beforeAll()
    spark.range(0, 20000, 1, files).selectExpr("id", "id % 10 AS k").write.parquet(source)
  }

  private def stream(session: SparkSession): DataFrame =
    session.readStream.schema("id LONG, k LONG").option("maxFilesPerTrigger", 1).parquet(source)

  private def joined(session: SparkSession): DataFrame = stream(session).join(session.table("few"), "k")

  /** Runs all batches, and returns the decisions of the session. */
  private def run(session: SparkSession, writer: DataStreamWriter[Row]): Seq[DecisionRecord] = {
    val checkpoint = Files.createTempDirectory("checkpoint").toString
    writer.trigger(Trigger.AvailableNow()).option("checkpointLocation", checkpoint).start().awaitTermination()
    DecisionLog.of(session).all
  }

  private def noop(frame: DataFrame): DataStreamWriter[Row] = frame.writeStream.format("noop")

  private def inEachBatch(frame: DataFrame)(body: Dataset[Row] => Unit): DataStreamWriter[Row] = {
    val function: (Dataset[Row], Long) => Unit = (batch, _) => body(batch)
    frame.writeStream.foreachBatch(function)
  }

  private def joins(decisions: Seq[DecisionRecord]): Seq[Int] =
    decisions.filter(_.operator.contains("Join")).map(_.tasks)

  test("each batch of a stream is decided, in the session that started the stream") {
    since("4.1")
    withSession(shuffled, "parallelism" -> "3") { session =>
      val decisions = run(session, noop(joined(session)))
      assert(joins(decisions) == Seq.fill(files)(3))
      assert(decisions.flatMap(_.query).distinct.size == files)
    }
  }

  test("streams of a session leave no listener") {
    since("4.1")
    withSession(shuffled) { session =>
      // Spark adds a listener for the first stream of a session.
      val listeners = for (_ <- 1 to 2) yield {
        run(session, noop(joined(session)))
        Listeners.count(session.sparkContext)
      }
      assert(listeners.distinct.size == 1)
    }
  }

  test("a hint in a stream sets the number of tasks of each batch") {
    since("4.1")
    withSession(shuffled) { session =>
      assert(joins(run(session, noop(joined(session).hint("parallelism", 5)))) == Seq.fill(files)(5))
    }
  }

  test("the scan of a stream has the decided number of tasks") {
    def tasks(settings: (String, String)*): Set[Int] = {
      val small = Seq("mode" -> "active", "dataVolumePerTask" -> "1KB", "spark.sql.files.openCostInBytes" -> "1")
      withSession(small ++ settings: _*) { session =>
        val counts = mutable.Set.empty[Int]
        run(session, inEachBatch(stream(session))(batch => counts += batch.rdd.getNumPartitions))
        counts.toSet
      }
    }
    val sparks = tasks("enabled" -> "false")
    val isAdaptive = SPARK_VERSION >= "4.1"
    assert((tasks() == sparks) != isAdaptive, "only an adaptive stream is decided by bytes")
    assert(tasks("sources.parallelism" -> "7") == Set(7))
  }

  test("queries of foreachBatch are decided like other queries") {
    since("4.1")
    withSession("parallelism" -> "3") { session =>
      val rows = mutable.Buffer.empty[Int]
      val decisions =
        run(session, inEachBatch(stream(session))(batch => rows += batch.groupBy("k").count().collect().length))
      assert(rows == Seq.fill(files)(10))
      assert(decisions.filter(_.operator.contains("Aggregate")).map(_.tasks) == Seq.fill(files)(3))
    }
  }

  for (hinted <- Seq(false, true))
    test(s"a stream with state is not decided${if (hinted) ", not even by a hint" else ""}") {
      def counts(settings: (String, String)*): (Set[Row], Seq[DecisionRecord]) =
        withSession(settings :+ ("spark.sql.shuffle.partitions" -> "2"): _*) { session =>
          val source = if (hinted) stream(session).hint("parallelism", 3) else stream(session)
          val counted = source.groupBy("k").count()
          val rows = mutable.Set.empty[Row]
          val writer = inEachBatch(if (hinted) counted.hint("data_volume", "1KB") else counted) { batch =>
            rows.clear()
            rows ++= batch.collect()
          }
          val decisions = run(session, writer.outputMode("complete"))
          (rows.toSet, decisions)
        }
      val (rows, decisions) = counts()
      assert(rows.size == 10 && rows == counts("enabled" -> "false")._1)
      assert(decisions.isEmpty)
    }
}
