package org.apache.spark.apportion

import java.util.concurrent.atomic.AtomicLong

import scala.util.Random

import io.apportion.ApportionExtension
import io.apportion.keys.EvenKeys
import org.apache.spark.scheduler.{SparkListener, SparkListenerTaskEnd}
import org.apache.spark.sql.classic.SparkSession

/**
 * What the functions on keys cost, against Spark's own hash of the same keys: turn by turn, each over all rows on one core. The keys
 * themselves, or their length, tell what of that is not the functions.
 */
object KeyBenchmark {
  private val Numbers = 100000000L
  private val Texts = 10000000L
  private val Rounds = 7

  /** @param times as long as `hash` of the same key takes: the median over the rounds, and the quartiles */
  final case class Result(function: String, rows: Long, seconds: Double, hashSeconds: Double, times: Ratio)

  /** Milliseconds that a table of `even_key` for 32,768 tasks takes, the first of this JVM. */
  lazy val firstTableMillis: Double = {
    val start = System.nanoTime()
    EvenKeys(32768, 32768)
    (System.nanoTime() - start) / 1e6
  }

  def run(): Seq[Result] = {
    val session = SparkSession
      .builder()
      .master("local[1]")
      // Sums that overflow.
      .config("spark.sql.ansi.enabled", "false")
      .withExtensions(new ApportionExtension)
      .getOrCreate()
    try
      measure(session, Numbers, "id")(
        "id",
        "even_key(id, 200)",
        "even_key(id, 1000, 4096)",
        "subpartition_of(200, id)",
        "task_of(64, 1024, id)",
        "flink_key_group(id, 128)",
        "flink_operator_index(flink_key_group(id, 128), 5)"
      ) ++
        measure(session, Numbers, "int(id)")("int(id)", "even_key(int(id), 200)", "flink_key_group(int(id), 128)") ++
        measure(session, Texts, "string(id)")("length(string(id))", "flink_key_group(string(id), 128)")
    finally session.stop()
  }

  private def measure(session: SparkSession, rows: Long, key: String)(functions: String*): Seq[Result] = {
    val hash = s"hash($key)"
    val random = new Random(1)
    val rounds =
      (0 to Rounds).map(_ => random.shuffle(hash +: functions).map(call => call -> time(session, rows, call)).toMap)
    val measured = rounds.drop(1) // The first one warms up.
    functions.map { function =>
      Result(
        function,
        rows,
        Ratio.quantile(measured.map(_(function)), 0.5),
        Ratio.quantile(measured.map(_(hash)), 0.5),
        Ratio.of(measured.map(round => round(function) / round(hash)))
      )
    }
  }

  /** Seconds that the core is busy with it. */
  private def time(session: SparkSession, rows: Long, call: String): Double = {
    val busy = new AtomicLong
    val listener = new SparkListener {
      override def onTaskEnd(end: SparkListenerTaskEnd): Unit = busy.addAndGet(end.taskMetrics.executorCpuTime)
    }
    session.sparkContext.addSparkListener(listener)
    session.range(0, rows, 1, 1).selectExpr(s"sum($call)").collect()
    session.sparkContext.listenerBus.waitUntilEmpty()
    session.sparkContext.removeSparkListener(listener)
    busy.get / 1e9
  }
}
