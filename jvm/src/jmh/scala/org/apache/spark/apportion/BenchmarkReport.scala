package org.apache.spark.apportion

import java.nio.file.{Files, Paths}
import java.util.Locale

import scala.collection.immutable.ListMap
import scala.jdk.CollectionConverters._
import scala.sys.process._

import io.apportion.policies.PolicyBenchmark
import org.apache.spark.SPARK_VERSION
import org.openjdk.jmh.runner.Runner
import org.openjdk.jmh.runner.options.OptionsBuilder

/**
 * Runs the benchmarks and writes the results to docs/measurements/cost.csv. With arguments, prints only these sections:
 * `decisions`, `balanced`, `skewed`, `scans`, `hints`, `policies` or `keys`.
 */
object BenchmarkReport {

  /** A result with its bounds: the error of JMH, or the quartiles of the rounds. */
  private case class Row(item: String, measure: String, value: Double, bounds: Option[(Double, Double)], digits: Int) {
    def csv(section: String): String = {
      val numbers = value +: bounds.toSeq.flatMap { case (low, high) => Seq(low, high) }
      val texts = numbers.map(number => String.format(Locale.ROOT, s"%.${digits}f", Double.box(number)))
      (Seq(section, item, measure).map(quoted) ++ texts.padTo(3, "")).mkString(",")
    }
  }

  private val sections = ListMap(
    "decisions" -> (() => decisions()),
    "balanced" -> (() => balanced()),
    "skewed" -> (() => skewed()),
    "scans" -> (() => scans()),
    "hints" -> (() => hints()),
    "policies" -> (() => policies()),
    "keys" -> (() => keys())
  )

  def main(args: Array[String]): Unit =
    if (args.isEmpty) {
      val lines = conditions ++ ("section,item,measure,value,low,high" +: sections.keys.toSeq.flatMap(run))
      Files.write(Paths.get("docs/measurements/cost.csv"), lines.asJava)
    } else args.flatMap(run).foreach(println)

  private def run(section: String): Seq[String] = sections(section)().map(_.csv(section))

  private def conditions: Seq[String] = Seq(
    "kind" -> "measured",
    "commit" -> "git describe --always --dirty --exclude=*".!!.trim,
    "spark" -> SPARK_VERSION,
    "java" -> sys.props("java.version"),
    "cores" -> sys.runtime.availableProcessors
  ).map { case (key, value) => s"# $key: $value" }

  /** Time and error of each benchmark of a class, by its name, for each value of the parameter. */
  private def times(benchmarks: Class[_], parameter: String): Seq[(String, Map[String, (Double, Double)])] = {
    val options = new OptionsBuilder().include(benchmarks.getSimpleName).build()
    val results = new Runner(options).run().asScala.toSeq
    results.groupBy(_.getParams.getParam(parameter)).toSeq.map { case (value, ofValue) =>
      value -> ofValue.map(_.getPrimaryResult).map(r => (r.getLabel, (r.getScore, r.getScoreError))).toMap
    }
  }

  private def timed(item: String, measure: String, time: (Double, Double)): Row =
    Row(item, measure, time._1, Some((time._1 - time._2, time._1 + time._2)), 0)

  private def ratio(item: String, measure: String, ratio: Ratio): Row =
    Row(item, measure, ratio.median, Some((ratio.lower, ratio.upper)), 2)

  /** 1,024 balanced ranges of 4 shuffles, and a plain sum over the same arrays in one run. */
  private def balanced(): Seq[Row] =
    times(classOf[BalancedBenchmark], "subpartitions").sortBy(_._1.toInt).flatMap { case (n, times) =>
      Seq("plainSum" -> "plain sum", "balanced" -> "decision").map { case (benchmark, name) =>
        timed(s"$name, $n", "microseconds", times(benchmark))
      }
    }

  /** One group of 4 shuffles with 100,000 partitions each. Specs are those of Spark's shuffle reads. */
  private def decisions(): Seq[Row] =
    times(classOf[DecisionBenchmark], "volume").flatMap { case (volume, times) =>
      Seq(
        "plainSum" -> "plain sum",
        "decision" -> "Apportion: decision",
        "apportion" -> "Apportion: decision and specs",
        "spark" -> "Spark: coalescing and specs"
      ).map { case (benchmark, name) => timed(s"$name, $volume", "microseconds", times(benchmark)) }
    }

  /** A shuffle of 10,000 map tasks, 400 of whose 2,000 partitions are skewed. */
  private def skewed(): Seq[Row] = {
    val all = times(classOf[SkewBenchmark], "").map(_._2).head
    Seq(
      "readBlocks" -> "reading the bytes of the blocks",
      "decision" -> "deciding, with these bytes known",
      "both" -> "both"
    ).map { case (benchmark, name) => timed(name, "milliseconds", all(benchmark)) }
  }

  /** A scan of a million Parquet files of about 1 MB, beside Spark's own planning in one session. */
  private def scans(): Seq[Row] = {
    val (sparksMillis, results) = ScanBenchmark.run()
    Row("Spark's planning", "milliseconds", sparksMillis, None, 0) +: results.flatMap { result =>
      Seq(
        Row(result.name, "milliseconds", result.decideMillis, None, 0),
        ratio(result.name, "share of Spark's planning", result.share)
      )
    }
  }

  /** Analysis and optimization: with hints and without, and with Apportion on and off. */
  private def hints(): Seq[Row] = HintBenchmark.run().flatMap { result =>
    Seq(
      Row(result.name, "milliseconds without hints", result.plainMillis, None, 1),
      ratio(result.name, "hinted", result.hinted),
      ratio(result.name, "on without hints", result.withoutHints)
    )
  }

  /** 1,000 rules of a policy file, for each of the 125 queries of TPC-DS and TPC-H. */
  private def policies(): Seq[Row] = PolicyBenchmark.run().flatMap { result =>
    Seq(
      Row(result.name, "milliseconds, mean", result.meanMillis, None, 3),
      Row(result.name, "milliseconds, slowest", result.slowestMillis, None, 3)
    )
  }

  /** Seconds that one core is busy with a function, beside Spark's `hash` of the same key. */
  private def keys(): Seq[Row] =
    Row("first table of even_key", "milliseconds", KeyBenchmark.firstTableMillis, None, 1) +:
      KeyBenchmark.run().flatMap { result =>
        Seq(
          Row(result.function, "seconds", result.seconds, None, 2),
          Row(result.function, "seconds of hash", result.hashSeconds, None, 2),
          ratio(result.function, "times hash", result.times)
        )
      }

  private def quoted(text: String): String = if (text.contains(",")) "\"" + text + "\"" else text
}
