package org.apache.spark.apportion

import java.util.concurrent.atomic.AtomicLong

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

  /** Seconds that one core is busy with a function, beside Spark's `hash` of the same key. */
  def run(): Seq[Result] = {
    // The first table of this JVM, for 32,768 tasks
    val firstTable = Result("first table of even_key", "milliseconds", Turns.millis(EvenKeys(32768, 32768)), 1)
    // Sums overflow.
    firstTable +: Turns.inSession("local[1]", "spark.sql.ansi.enabled" -> "false") { session =>
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
    }
  }

  private def measure(session: SparkSession, rows: Long, key: String)(functions: String*): Seq[Result] = {
    val hash = s"hash($key)"
    val variants = (hash +: functions).map(call => call -> (() => time(session, rows, call)))
    val measured = Turns.rounds(Rounds + 1, warmUp = 1)(variants)
    functions.flatMap { function =>
      Seq(
        Result(function, "seconds", Turns.median(measured.map(_(function))), 2),
        Result(function, "seconds of hash", Turns.median(measured.map(_(hash))), 2),
        Turns.ratio(function, "times hash", measured.map(round => round(function) / round(hash)))
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
