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

  private val sections = ListMap(
    "decisions" -> (() => decisions()),
    "balanced" -> (() => balanced()),
    "skewed" -> (() => skewed()),
    "scans" -> (() => ScanBenchmark.run()),
    "hints" -> (() => HintBenchmark.run()),
    "policies" -> (() => PolicyBenchmark.run()),
    "keys" -> (() => KeyBenchmark.run())
  )

  def main(args: Array[String]): Unit =
    if (args.isEmpty) {
      val lines = conditions ++ ("section,item,measure,value,low,high" +: sections.keys.toSeq.flatMap(run))
      Files.write(Paths.get("docs/measurements/cost.csv"), lines.asJava)
    } else args.flatMap(run).foreach(println)

  private def run(section: String): Seq[String] = sections(section)().map { result =>
    val numbers = result.value +: result.bounds.toSeq.flatMap { case (low, high) => Seq(low, high) }
    val texts = numbers.map(number => String.format(Locale.ROOT, s"%.${result.digits}f", Double.box(number)))
    (Seq(section, result.item, result.measure).map(quoted) ++ texts.padTo(3, "")).mkString(",")
  }

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

  private def timed(item: String, measure: String, time: (Double, Double)): Result =
    Result(item, measure, time._1, 0, Some((time._1 - time._2, time._1 + time._2)))

  /** 1,024 balanced ranges of 4 shuffles, and a plain sum over the same arrays in one run. */
  private def balanced(): Seq[Result] =
    times(classOf[BalancedBenchmark], "subpartitions").sortBy(_._1.toInt).flatMap { case (n, times) =>
      Seq("plainSum" -> "plain sum", "balanced" -> "decision").map { case (benchmark, name) =>
        timed(s"$name, $n", "microseconds", times(benchmark))
      }
    }

  /** One group of 4 shuffles with 100,000 partitions each. Specs are those of Spark's shuffle reads. */
  private def decisions(): Seq[Result] =
    times(classOf[DecisionBenchmark], "volume").flatMap { case (volume, times) =>
      Seq(
        "plainSum" -> "plain sum",
        "decision" -> "Apportion: decision",
        "apportion" -> "Apportion: decision and specs",
        "spark" -> "Spark: coalescing and specs"
      ).map { case (benchmark, name) => timed(s"$name, $volume", "microseconds", times(benchmark)) }
    }

  /** A shuffle of 10,000 map tasks, 400 of whose 2,000 partitions are skewed. */
  private def skewed(): Seq[Result] = {
    val all = times(classOf[SkewBenchmark], "").map(_._2).head
    Seq(
      "readBlocks" -> "reading the bytes of the blocks",
      "decision" -> "deciding, with these bytes known",
      "both" -> "both"
    ).map { case (benchmark, name) => timed(name, "milliseconds", all(benchmark)) }
  }

  private def quoted(text: String): String = if (text.contains(",")) "\"" + text + "\"" else text
}
